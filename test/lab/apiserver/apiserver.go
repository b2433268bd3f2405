// Package apiserver runs etcd and kube-apiserver of the lab's components as processes of this machine, for tests of
// what an API server does with our objects. There are no nodes, no scheduler and no controllers.
package apiserver

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"kubeone/test/lab/components"
)

// Start starts both, and stops them when the test ends. Components that the cache lacks are built first. It returns how
// an administrator reaches the API.
func Start(ctx context.Context, t *testing.T, version string) *rest.Config {
	t.Helper()
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	builder := components.Builder{Cache: cache, Log: t.Logf}
	set, err := builder.Build(ctx, version)
	if err != nil {
		t.Fatal(err)
	}
	server := &envtest.APIServer{Path: set.Bin["kube-apiserver"]}
	env := &envtest.Environment{ControlPlane: envtest.ControlPlane{
		APIServer: server, Etcd: &envtest.Etcd{Path: set.Bin["etcd"]}, KubectlPath: set.Bin["kubectl"],
	}}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	config, err := env.Start()
	if err != nil {
		t.Fatal(fmt.Errorf("start an API server: %w", err))
	}
	return config
}
