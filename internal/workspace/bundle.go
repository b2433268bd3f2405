package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/addons"
	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/resources"
	"kubeone/internal/engine"
	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

// BundleContents is what a bundle for a manifest contains.
type BundleContents struct {
	Want      release.Want
	Workloads release.Workloads
	Warnings  []manifest.Problem
	// Notes say which hosts need another bundle too, and which images kubelets do not take from a bundle.
	Notes []string
}

// ReadBundleContents loads a manifest, fetches the charts of its Helm releases from their sources, and renders them.
// The release has the versions of the manifest, and no architecture. Errors in files are *manifest.Problems or
// *engine.ConfigError, those of sources *release.ChartError.
func ReadBundleContents(ctx context.Context, o Options, src release.Source) (BundleContents, error) {
	loaded, err := manifest.Load(ctx, manifest.Options{
		ManifestPath: o.Manifest, TerraformPath: o.Terraform, CredentialsPath: o.Credentials, ReadAddons: true,
		Stdin: o.Stdin,
	})
	if err != nil {
		return BundleContents{}, err
	}
	out := BundleContents{Warnings: loaded.Warnings}
	out.Want, out.Notes = releaseOfManifest(loaded.Cluster)
	c := imageCollector{used: map[string]bool{}}
	if err := c.addPlugin(ctx, src, loaded.Cluster, out.Want); err != nil {
		return BundleContents{}, err
	}
	for _, a := range loaded.Addons.Custom {
		if !slices.Contains(loaded.Cluster.EmbeddedAddons, a.Name) { // whose images are part of the release
			c.addObjects("addon "+a.Name, a.Objects)
		}
	}
	for _, r := range loaded.Addons.Releases {
		fetched, objects, err := fetchAndRender(ctx, src, r, loaded.Cluster.KubernetesVersion)
		if err != nil {
			return BundleContents{}, err
		}
		if r.Chart.Archive == nil {
			out.Workloads.Charts = append(out.Workloads.Charts, release.Chart{From: r.Chart, Content: fetched})
		}
		c.addObjects("Helm release "+r.Key(), objects)
	}
	out.Workloads.Images, out.Notes = c.images, append(out.Notes, c.notes...)
	return out, nil
}

// releaseOfManifest returns the release of the cluster, and notes on hosts with other versions.
func releaseOfManifest(want desired.Cluster) (release.Want, []string) {
	if name := desired.MetricsServerAddon; want.IsOwnAddon(name) && want.DefaultAddon(name) == nil {
		want = want.WithDefaultAddon(name) // new clusters get it
	}
	out := release.Want{
		KubernetesVersion: want.KubernetesVersion, CNI: want.Network.CNI.Name, CNIVersion: want.Network.CNI.Version,
		KubeProxy: !want.Network.KubeProxy.Skip,
		Addons:    strings.Join(want.AddonsWithImages(), ","),
	}
	var notes []string
	for n, h := range want.Hosts() {
		if n == 0 {
			out.Containerd = h.Versions.Containerd
		}
		kubelet := want.KubeletVersion(h)
		if kubelet == want.KubernetesVersion && h.Versions.Containerd == out.Containerd {
			continue
		}
		note := fmt.Sprintf("%s has Kubernetes %s", h.ID, kubelet)
		if h.Versions.Containerd != "" {
			note += " and containerd " + h.Versions.Containerd
		}
		notes = append(notes, note+": create another bundle with --kubernetes-version or --containerd-version")
	}
	return out, notes
}

// fetchAndRender returns the chart of a release and its objects. Charts that ask the cluster get no answers.
func fetchAndRender(ctx context.Context, src release.Source, r addons.HelmRelease,
	kubernetes string) (chart.Chart, []resources.Object, error) {
	archive, err := src.FetchChart(ctx, r.Chart)
	if err != nil {
		if errors.Is(err, release.ErrNoChart) {
			return chart.Chart{}, nil, &engine.ConfigError{Err: &engine.HelmReleaseError{Key: r.Key(), Err: err}}
		}
		return chart.Chart{}, nil, &engine.HelmReleaseError{Key: r.Key(), Err: fmt.Errorf("cannot fetch %w", err)}
	}
	return renderChart(ctx, archive, r, kubernetes)
}

// renderChart returns a chart and the objects of a release of it.
func renderChart(ctx context.Context, archive []byte, r addons.HelmRelease,
	kubernetes string) (chart.Chart, []resources.Object, error) {
	c, err := chart.Load(archive)
	if err != nil {
		return c, nil, &engine.ConfigError{Err: &engine.HelmReleaseError{Key: r.Key(), Err: err}}
	}
	ctx, cancel := context.WithTimeout(ctx, chart.RenderTimeout)
	defer cancel()
	objects, err := c.Render(ctx, r.RenderInput(kubernetes, nil))
	if err != nil {
		return c, nil, &engine.ConfigError{Err: &engine.HelmReleaseError{Key: r.Key(), Err: err}}
	}
	return c, objects, nil
}

// imageCollector collects the images of objects.
type imageCollector struct {
	used   map[string]bool
	images []string
	notes  []string
}

// addPlugin adds the images of a network plugin that is a Helm release: those of features, and of the manifest's own
// values. The images that every cluster with the plugin needs are part of the release.
func (c *imageCollector) addPlugin(ctx context.Context, src release.Source, want desired.Cluster,
	wanted release.Want) error {
	wanted.Arch = release.Architectures()[0] // images have the same names for all
	names, err := release.Names(wanted)
	if err != nil {
		return nil //nolint:nilerr // the caller reports a release that does not exist
	}
	want.Artifacts = map[string]desired.Artifacts{wanted.Arch: names}
	plugin, isRelease, err := addons.NetworkRelease(want)
	if err != nil || !isRelease {
		return err
	}
	published, err := release.FetchPublished(ctx, src, wanted)
	if err != nil {
		return err
	}
	_, objects, err := renderChart(ctx, published[0].Content, plugin, want.KubernetesVersion)
	if err != nil {
		return err
	}
	for _, image := range names.Images {
		c.used[image.Name] = true
	}
	c.addObjects("network plugin "+plugin.Name, objects)
	return nil
}

// addObjects adds the images of the objects' pods. It notes those that kubelets pull although the host has them.
func (c *imageCollector) addObjects(of string, objects []resources.Object) {
	for _, image := range resources.PodImages(objects) {
		if !c.used[image.Name] {
			c.used[image.Name], c.images = true, append(c.images, image.Name)
		}
		if image.Always {
			c.notes = append(c.notes, fmt.Sprintf("%s: pods with image %s do not start without its registry, because they "+
				"pull it each time; set another imagePullPolicy", of, image.Name))
		}
	}
}
