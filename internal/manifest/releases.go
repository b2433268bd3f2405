package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	chartloader "helm.sh/helm/v4/pkg/chart/v2/loader"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/addons"
	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
)

const (
	defaultHelmTimeout = 5 * time.Minute
	maxValuesBytes     = 1 << 20
	ociScheme          = "oci://"
)

// checkReleaseNames reports releases that have the names of others, or that of the network plugin.
func (l *loader) checkReleaseNames() {
	names := map[string]string{}
	if plugin := l.cluster.ClusterNetwork.CNI.Name(); slices.Contains(plugins.Charted(), plugin) {
		names[desired.NetworkNamespace+"/"+plugin] = "clusterNetwork.cni." + plugin
	}
	for i, r := range l.cluster.HelmReleases {
		at, key := v1beta2.Item("helmReleases", i), r.Namespace+"/"+r.NameOfRelease()
		if other, found := names[key]; found {
			l.reportPath(at, Error, "give one of them another releaseName", fmt.Sprintf("is the same release as %s", other))
		}
		names[key] = at
	}
}

// checkPluginVersion reports a version of the network plugin that this program does not deploy.
func (l *loader) checkPluginVersion() {
	n := l.cluster.ClusterNetwork
	if n.CNI == nil || n.CNI.Cilium == nil {
		return
	}
	if _, err := plugins.FindVersion(n.CNI.Name(), n.CNI.Cilium.Version); err != nil {
		l.reportPath("clusterNetwork.cni.cilium.version", Error, "", err.Error())
	}
}

// readReleases reads the values of Helm releases, if the caller wants them.
func (l *loader) readReleases() {
	l.checkReleaseNames()
	if !l.ReadAddons {
		return
	}
	for i, r := range l.cluster.HelmReleases {
		at := v1beta2.Item("helmReleases", i)
		out := addons.HelmRelease{
			Name: r.NameOfRelease(), Namespace: r.Namespace, Wait: r.Wait, Timeout: defaultHelmTimeout,
			Values: l.releaseValues(at, r), Chart: l.locateChart(at, r),
		}
		if r.Timeout != "" {
			out.Timeout, _ = time.ParseDuration(r.Timeout) // validated
		}
		l.addons.Releases = append(l.addons.Releases, out)
	}
}

// locateChart returns where the chart of a release is. It reads the chart if that is a folder.
func (l *loader) locateChart(at string, r v1beta2.HelmRelease) chart.Source {
	out := chart.Source{
		URL: r.ChartURL, RepoURL: r.RepoURL, Name: r.Chart, Version: r.Version, Insecure: r.Insecure,
	}
	if r.Auth != nil {
		out.Username, out.Password = r.Auth.Username, r.Auth.Password
	}
	switch {
	case r.ChartURL != "":
		out.RepoURL, out.Name = "", ""
	case strings.HasPrefix(r.RepoURL, ociScheme):
		out.URL, out.RepoURL, out.Name = strings.TrimSuffix(r.RepoURL, "/")+"/"+r.Chart, "", ""
	case r.RepoURL == "":
		archive, err := packChart(l.absolutePath(r.Chart))
		if err != nil {
			l.reportPath(at+".chart", Error, "set repoURL, or name a chart folder relative to the manifest directory",
				err.Error())
			break
		}
		return chart.Source{Archive: archive, Folder: r.Chart}
	}
	return out
}

// packChart reads and checks a chart folder.
func packChart(folder string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	archive, err := chart.Pack(filepath.Base(folder), root.FS())
	if err != nil {
		return nil, err
	}
	_, err = chart.Load(archive)
	return archive, err
}

// releaseValues merges the values of a release in order, as helm does with several --values.
func (l *loader) releaseValues(at string, r v1beta2.HelmRelease) map[string]any {
	out := map[string]any{}
	for i, v := range r.Values {
		if v.ValuesFile == "" {
			out = chartloader.MergeMaps(out, v.Inline)
			continue
		}
		from := v1beta2.Item(at+".values", i) + ".valuesFile"
		text, err := readBounded(l.absolutePath(v.ValuesFile), maxValuesBytes)
		if err != nil {
			l.reportPath(from, Error, "the path is relative to the manifest directory", err.Error())
			continue
		}
		values, err := chartloader.LoadValues(bytes.NewReader(text))
		if err != nil {
			l.found = append(l.found, Problem{
				File: v.ValuesFile, Path: from, Message: err.Error(), Severity: Error,
			})
			continue
		}
		out = chartloader.MergeMaps(out, values)
	}
	return out
}

func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s is not a regular file of at most %d KiB", path, limit>>10)
	}
	return os.ReadFile(path)
}
