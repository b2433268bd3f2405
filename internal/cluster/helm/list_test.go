package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/addons/chart"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/model/observed"
)

// encode writes the data of a release as Helm does.
func encode(t *testing.T, text []byte) []byte {
	t.Helper()
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(zipped.Bytes()))
}

func releaseSecret(t *testing.T, namespace, name, revision, status string, extra map[string]string,
	change func(*releasev1.Release)) *corev1.Secret {
	t.Helper()
	r := &releasev1.Release{
		Name: name, Namespace: namespace, Config: map[string]any{"a": 1},
		Chart:    &chartv2.Chart{Metadata: &chartv2.Metadata{Name: "web", Version: "1.0.0+b"}},
		Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	}
	change(r)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"owner": "helm", "name": name, "version": revision, "status": status}
	maps.Copy(labels, extra)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sh." + name + revision, Labels: labels},
		Data:       map[string][]byte{"release": encode(t, text)},
	}
}

func TestAPIVersionsOfACluster(t *testing.T) {
	t.Parallel()
	kube := kubefake.NewClientset()
	kube.Resources = []*metav1.APIResourceList{
		{GroupVersion: "x.example/v1", APIResources: []metav1.APIResource{
			{Name: "widgets", Kind: "Widget"}, {Name: "widgets/status", Kind: "Widget"},
		}},
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod"}}},
	}
	got, err := APIVersions(ssa.New(kube, nil).Served())
	if diff := cmp.Diff([]string{"v1", "v1/Pod", "x.example/v1", "x.example/v1/Widget"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestListedReleases(t *testing.T) {
	t.Parallel()
	ours := map[string]string{sourceLabel: "source", versionLabel: "1.0.0_b"}
	as := func(*releasev1.Release) {}
	secrets := []*corev1.Secret{
		releaseSecret(t, "web", "web", "9", "superseded", ours, as),
		releaseSecret(t, "web", "web", "10", "deployed", ours, as),
		releaseSecret(t, "web", "failed", "1", "deployed", ours, as),
		releaseSecret(t, "web", "failed", "2", "failed", ours, as),
		releaseSecret(t, "web", "edited", "1", "deployed", ours, func(r *releasev1.Release) {
			r.Chart.Metadata.Version, r.Config = "2.0.0", map[string]any{}
		}),
		releaseSecret(t, "web", "broken", "1", "deployed", ours, func(r *releasev1.Release) { r.Chart = nil }),
		releaseSecret(t, "web", "malformed", "1", "deployed", ours, func(r *releasev1.Release) { r.Manifest = "kind: [" }),
		releaseSecret(t, "web", "theirs", "4", "deployed", nil, as),
		releaseSecret(t, "web", "unknown", "4", "deployed", nil, as),
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "bomb", Labels: map[string]string{
				"owner": "helm", "name": "bomb", "version": "x", "status": "deployed", sourceLabel: "a",
			}},
			Data: map[string][]byte{"release": encode(t, make([]byte, maxReleaseBytes+1))},
		},
	}
	objects := make([]runtime.Object, 0, len(secrets))
	for _, s := range secrets {
		objects = append(objects, s)
	}
	listed, err := List(t.Context(), kubefake.NewClientset(objects...), []string{"web/web", "web/theirs", "other/unknown"})
	if err != nil {
		t.Fatal(err)
	}
	values := chart.ValuesDigest(map[string]any{"a": 1})
	deployed := observed.HelmRelease{
		Objects:  1,
		Revision: 10, Status: "deployed", Chart: "web", Version: "1.0.0+b", Managed: true, Source: "source", Values: values,
	}
	failed, edited, theirs := deployed, deployed, deployed
	failed.Revision, failed.Status, failed.Objects = 2, "failed", 0
	edited.Revision, edited.Version, edited.Source, edited.Values = 1, "2.0.0", "", chart.ValuesDigest(nil)
	theirs.Revision, theirs.Managed, theirs.Source, theirs.Values = 4, false, "", ""
	for key, want := range map[string]observed.HelmRelease{
		"web/web": deployed, "web/failed": failed, "web/edited": edited, "web/theirs": theirs,
	} {
		if diff := cmp.Diff(want, listed[key].HelmRelease); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	for key, says := range map[string]string{
		"web/broken": "has no chart", "web/bomb": "larger than 64 MiB", "web/malformed": "manifest: document 1",
	} {
		if got := listed[key].Problem; !strings.Contains(got, says) || !listed[key].Managed {
			t.Errorf("%s: %q", key, got)
		}
	}
	if keys := slices.Sorted(maps.Keys(listed)); len(keys) != 7 {
		t.Errorf("listed %v", keys)
	}
	if n := len(listed["web/failed"].Objects); n > 0 {
		t.Errorf("%d objects of a release that failed", n)
	}
	o := listed["web/web"].Objects[0]
	if o.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" ||
		o.GetAnnotations()["meta.helm.sh/release-name"] != "web" {
		t.Errorf("%v", o)
	}
}
