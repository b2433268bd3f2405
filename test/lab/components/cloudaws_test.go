//go:build e2e && long

package components

import (
	"encoding/base64"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/cloud"
	"kubeone/internal/addons/resources"
)

// renderCloudAWS renders the chart of the controller manager as kubeone does, and returns its DaemonSet. A value that
// the chart does not know would have no effect.
func renderCloudAWS(t *testing.T, release cloud.Release) appsv1.DaemonSet {
	t.Helper()
	cache, err := DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	set := &Set{Bin: map[string]string{}}
	if err := NewBuilder(cache, t.Logf).addCloudAWSChart(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(set.Files[0].Local)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := chart.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Name != release.Chart.Name || loaded.Version != cloudAWSChartVersion {
		t.Fatalf("the chart is %s %s", loaded.Name, loaded.Version)
	}
	objects, err := loaded.Render(t.Context(), chart.Release{
		Name: release.Chart.Name, Namespace: cloud.Namespace, Values: release.Values,
		KubernetesVersion: DefaultKubernetesVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := slices.IndexFunc(objects, func(o resources.Object) bool { return o["kind"] == "DaemonSet" })
	if n < 0 {
		t.Fatal("the chart has no DaemonSet")
	}
	text, err := yaml.Marshal(objects[n])
	if err != nil {
		t.Fatal(err)
	}
	var out appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestChartOfCloudAWS renders the chart with the values of kubeone.
func TestChartOfCloudAWS(t *testing.T) {
	provider, _ := cloud.Find("aws")
	in := cloud.Input{
		ClusterName: "demo", KubernetesVersion: DefaultKubernetesVersion, PodSubnet: "10.244.0.0/16", Config: "[Global]\n",
		Credentials: map[string]string{"AWS_ACCESS_KEY_ID": "the-id", "AWS_SECRET_ACCESS_KEY": "the-secret"},
	}
	pod := renderCloudAWS(t, provider.Releases(in)[0]).Spec.Template.Spec
	container := pod.Containers[0]
	if want := "registry.k8s.io/provider-aws/cloud-controller-manager:" + cloudAWSTag; container.Image != want {
		t.Errorf("the image is %s, want %s", container.Image, want)
	}
	want := []string{
		"--v=2", "--cloud-provider=aws", "--cluster-name=demo", "--configure-cloud-routes=false",
		"--cloud-config=/etc/cloud/cloud.conf",
	}
	if diff := cmp.Diff(want, container.Args); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"node-role.kubernetes.io/control-plane": ""}, pod.NodeSelector); diff != "" {
		t.Error(diff)
	}
	for _, taint := range []corev1.Taint{
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule},
		{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule},
		{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule},
	} {
		if !slices.ContainsFunc(pod.Tolerations, func(tol corev1.Toleration) bool {
			return tol.Key == taint.Key && tol.Effect == taint.Effect &&
				(tol.Operator == corev1.TolerationOpExists || tol.Value == taint.Value)
		}) {
			t.Errorf("the taint %s is not tolerated", taint.Key)
		}
	}
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSDefault {
		t.Errorf("host network: %t, DNS policy: %s", pod.HostNetwork, pod.DNSPolicy)
	}
	checkSecretsOfPod(t, pod, provider.Objects(in))

	in.Credentials, in.Config, in.Registry.Overwrite = nil, "", "registry.example.com"
	pod = renderCloudAWS(t, provider.Releases(in)[0]).Spec.Template.Spec
	if container := pod.Containers[0]; len(container.Env)+len(pod.Volumes) > 0 ||
		!strings.HasPrefix(container.Image, "registry.example.com/provider-aws/") {
		t.Errorf("without keys, with another registry: %s, %v, %v", container.Image, container.Env, pod.Volumes)
	}
}

// checkSecretsOfPod checks that each key of a Secret that the pod reads exists.
func checkSecretsOfPod(t *testing.T, pod corev1.PodSpec, objects []resources.Object) {
	t.Helper()
	data := map[string]string{}
	for _, o := range objects {
		for key, value := range o["data"].(map[string]any) {
			text, err := base64.StdEncoding.DecodeString(value.(string))
			if err != nil {
				t.Fatal(err)
			}
			data[o["metadata"].(map[string]any)["name"].(string)+"/"+key] = string(text)
		}
	}
	got := map[string]string{}
	for _, env := range pod.Containers[0].Env {
		ref := env.ValueFrom.SecretKeyRef
		got[env.Name] = data[ref.Name+"/"+ref.Key]
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		n := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		got[mount.MountPath+"/cloud.conf"] = data[pod.Volumes[n].Secret.SecretName+"/cloud.conf"]
	}
	want := map[string]string{
		"AWS_ACCESS_KEY_ID": "the-id", "AWS_SECRET_ACCESS_KEY": "the-secret", "/etc/cloud/cloud.conf": "[Global]\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
