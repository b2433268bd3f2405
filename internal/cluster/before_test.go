package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// counting is an API server that was asked for a resource that 1.32 has removed.
func counting(t *testing.T, resources ...string) (Endpoint, []byte) {
	t.Helper()
	server := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		for _, resource := range resources {
			_, _ = fmt.Fprintf(w, "apiserver_requested_deprecated_apis{group=%q,removed_release=%q,resource=%q,subresource=%q,version=%q} 1\n",
				"old.k8s.io", "1.32", resource, "", "v1beta1")
		}
		_, _ = io.WriteString(w, "other 1\n")
	})
	return through(strings.Join(resources, "-"), &dials{to: server.Listener.Addr().String()}), kubeconfigFor(t, server, "https://example.com:6443", nil)
}

func TestEveryAPIServerIsAskedForRemovedAPIs(t *testing.T) {
	t.Parallel()
	first, kubeconfig := counting(t, "zebras", "apes")
	second, _ := counting(t, "bears", "apes")
	said := func(resource string) string {
		return "old.k8s.io/v1beta1 " + resource + " is in use and was removed in Kubernetes 1.32: clients that still ask for it will fail"
	}
	got, err := removedAPIs(soon(t), Access{Kubeconfig: kubeconfig, Via: []Endpoint{first, second}}, "1.36.3")
	if diff := cmp.Diff([]string{said("apes"), said("bears"), said("zebras")}, got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err = removedAPIs(ctx, Access{Kubeconfig: kubeconfig, Via: []Endpoint{through("away", &dials{}), second}}, "1.36.3")
	if diff := cmp.Diff([]string{said("apes"), said("bears")}, got); diff != "" || err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("with one that is away: %v, %s", err, diff)
	}
}

func TestWhatADrainLoses(t *testing.T) {
	t.Parallel()
	with := func(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		change(p)
		return p
	}
	scratch := func(medium corev1.StorageMedium) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}}
		}
	}
	c, _ := faked(t,
		pod("bare", ""), pod("web", "ReplicaSet"), with(pod("cache", "ReplicaSet"), scratch("")),
		with(pod("ram", "ReplicaSet"), scratch(corev1.StorageMediumMemory)), with(pod("agent", "DaemonSet"), scratch("")),
		with(pod("static", ""), func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		with(pod("over", ""), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		with(pod("elsewhere", ""), func(p *corev1.Pod) { p.Spec.NodeName = "cp-2" }),
		budget(2),
	)
	pods, err := c.doomedPods(t.Context(), []string{"cp-1"})
	stuck, err2 := c.stuckBudgets(t.Context())
	want := []string{
		"pods without a controller will be gone after the drain: default/bare",
		"pods lose the content of their emptyDir volumes when they move: default/cache",
		"default: PodDisruptionBudget strict wants 2 of 2 pods, so it never allows a disruption; a drain will stop there",
	}
	if diff := cmp.Diff(want, append(pods, stuck...)); diff != "" || err != nil || err2 != nil {
		t.Errorf("%v, %v, %s", err, err2, diff)
	}
}
