package helm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/observed"
)

const (
	// sourceLabel and versionLabel are on the releases of kubeone. Their values are the digest of the chart's source and
	// the version of the chart, with "_" for "+".
	sourceLabel  = "kubeone.k8c.io/chart-source"
	versionLabel = "kubeone.k8c.io/chart-version"

	maxReleaseBytes = 64 << 20 // of a release after decompression
)

// Listed is the last revision of a release.
type Listed struct {
	observed.HelmRelease
	// Objects are the release's objects as Helm applied them, without hooks and CustomResourceDefinitions in crds/. They
	// are nil if the last operation failed or was interrupted.
	Objects []unstructured.Unstructured
}

// List returns all releases that kubeone installed, and those among keys that others installed, by "namespace/name".
func List(ctx context.Context, kube kubernetes.Interface, keys []string) (map[string]Listed, error) {
	out := map[string]Listed{}
	if err := listSelected(ctx, kube, sourceLabel, out); err != nil {
		return nil, err
	}
	var names []string
	for _, key := range keys {
		if _, found := out[key]; !found {
			_, name, _ := strings.Cut(key, "/")
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return out, nil
	}
	others := map[string]Listed{}
	if err := listSelected(ctx, kube, "name in ("+strings.Join(names, ",")+")", others); err != nil {
		return nil, err
	}
	for _, key := range keys {
		if other, found := others[key]; found {
			out[key] = other
		}
	}
	return out, nil
}

// APIVersions returns what charts find in .Capabilities.APIVersions while Helm applies them: the API versions, and the
// kinds in each, sorted. API services that do not answer are left out.
func APIVersions(served discovery.ServerResourcesInterface) ([]string, error) {
	versions, err := action.GetVersionSet(served)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(slices.Values(versions)), nil
}

// listSelected adds the last revision of each release with the labels.
func listSelected(ctx context.Context, kube kubernetes.Interface, labels string, out map[string]Listed) error {
	list, err := kube.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: "owner=helm,status!=superseded," + labels,
	})
	if err != nil {
		return err
	}
	last := map[string]*corev1.Secret{}
	for i := range list.Items {
		s := &list.Items[i]
		if key := s.Namespace + "/" + s.Labels["name"]; last[key] == nil || revisionOf(s) > revisionOf(last[key]) {
			last[key] = s
		}
	}
	for key, s := range last {
		out[key] = newListed(s)
	}
	return nil
}

func revisionOf(s *corev1.Secret) int {
	n, _ := strconv.Atoi(s.Labels["version"]) // 0 for a Secret that Helm has not written
	return n
}

// newListed decodes a release. Anyone who can write Secrets may have changed it.
func newListed(s *corev1.Secret) Listed {
	out := Listed{HelmRelease: observed.HelmRelease{
		Revision: revisionOf(s), Status: s.Labels["status"], Managed: s.Labels[sourceLabel] != "",
	}}
	release, err := decodeRelease(s.Data["release"])
	if err != nil {
		out.Problem = fmt.Sprintf("Secret %s/%s: %v", s.Namespace, s.Name, err)
		return out
	}
	out.Chart, out.Version = release.Chart.Metadata.Name, release.Chart.Metadata.Version
	if out.Managed {
		out.Values = chart.ValuesDigest(release.Config)
		if s.Labels[versionLabel] == labelVersion(out.Version) { // else another program has changed the chart
			out.Source = s.Labels[sourceLabel]
		}
	}
	if out.Status != "deployed" {
		return out
	}
	contents, err := resources.Parse("manifest", release.Manifest)
	if err == nil {
		out.Objects, err = Mark(s.Namespace, s.Labels["name"], contents)
		out.HelmRelease.Objects = len(out.Objects)
	}
	if err != nil {
		out.Problem = fmt.Sprintf("Secret %s/%s: %v", s.Namespace, s.Name, err)
	}
	return out
}

// decodeRelease decodes the data of a release: base64 of compressed JSON.
func decodeRelease(data []byte) (*releasev1.Release, error) {
	zipped, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	unzip, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(unzip, maxReleaseBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxReleaseBytes {
		return nil, fmt.Errorf("the release is larger than %d MiB", maxReleaseBytes>>20)
	}
	var out releasev1.Release
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	if out.Chart == nil || out.Chart.Metadata == nil {
		return nil, fmt.Errorf("the release has no chart")
	}
	return &out, nil
}

// Mark returns the objects of a chart as Helm applies them for a release, without hooks.
func Mark(namespace, name string, contents []resources.Object) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for _, content := range contents {
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(text); err != nil { // whole numbers become int64, as in the API machinery
			return nil, err
		}
		if o.GetAnnotations()["helm.sh/hook"] == "" {
			setOwner(&o, namespace, name)
			out = append(out, o)
		}
	}
	return out, nil
}

// setOwner adds the label and annotations that Helm adds to each object.
func setOwner(o *unstructured.Unstructured, namespace, name string) {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels["app.kubernetes.io/managed-by"] = "Helm"
	annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = name, namespace
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// labelVersion returns a version as the value of a label.
func labelVersion(version string) string {
	const maxLabel = 63
	version = strings.ReplaceAll(version, "+", "_")
	return strings.Trim(version[:min(len(version), maxLabel)], "-_.")
}
