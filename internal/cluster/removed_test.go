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
)

// deprecated returns an API server's metric of requests for a deprecated resource.
func deprecated(group, removed, resource, version string) string {
	return fmt.Sprintf("apiserver_requested_deprecated_apis{group=%q,removed_release=%q,resource=%q,"+
		"subresource=\"\",version=%q} 1\n", group, removed, resource, version)
}

// counting returns an API server with requests for resources that 1.32 removes.
func counting(t *testing.T, resources ...string) (Endpoint, []byte) {
	t.Helper()
	server := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		for _, resource := range resources {
			_, _ = io.WriteString(w, deprecated("old.k8s.io", "1.32", resource, "v1beta1"))
		}
		_, _ = io.WriteString(w, "other 1\n")
	})
	return through(strings.Join(resources, "-"), &dials{to: server.Listener.Addr().String()}),
		kubeconfigFor(t, server, "https://example.com:6443", nil)
}

func TestEveryAPIServerIsAskedForRemovedAPIs(t *testing.T) {
	t.Parallel()
	first, kubeconfig := counting(t, "zebras", "apes")
	second, _ := counting(t, "bears", "apes")
	said := func(resource string) string {
		return "old.k8s.io/v1beta1 " + resource +
			" is in use, but was removed in Kubernetes 1.32; clients that still request it will fail"
	}
	got, err := removedAPIs(soon(t), Access{Kubeconfig: kubeconfig, Via: []Endpoint{first, second}}, "1.36.3")
	if diff := cmp.Diff([]string{said("apes"), said("bears"), said("zebras")}, got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err = removedAPIs(ctx, Access{Kubeconfig: kubeconfig, Via: []Endpoint{through("away", &dials{}), second}},
		"1.36.3")
	if diff := cmp.Diff([]string{said("apes"), said("bears")}, got); diff != "" || err == nil ||
		!strings.Contains(err.Error(), "away") {
		t.Errorf("with one that is away: %v, %s", err, diff)
	}
}

func TestRemovedAPIsInUse(t *testing.T) {
	t.Parallel()
	metrics := "# HELP apiserver_requested_deprecated_apis [STABLE] Gauge\n" +
		deprecated("flowcontrol.apiserver.k8s.io", "1.32", "flowschemas", "v1beta3") +
		deprecated("", "1.40", "endpoints", "v1") +
		deprecated("", "", "componentstatuses", "v1") +
		"other{removed_release=\"1.20\"} 1\n"
	want := []string{"flowcontrol.apiserver.k8s.io/v1beta3 flowschemas is in use, but was removed in Kubernetes 1.32; " +
		"clients that still request it will fail"}
	if diff := cmp.Diff(want, RemovedAPIs(metrics, "1.36.3")); diff != "" {
		t.Error(diff)
	}
	if got := RemovedAPIs(metrics, "1.31.9"); len(got) != 0 {
		t.Errorf("not removed yet: %v", got)
	}
}
