// Package apiserver runs etcd and kube-apiserver of the lab's components as processes of this machine, for tests of
// what an API server does with our objects. There are no nodes, no scheduler and no controllers.
package apiserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"kubeone/test/lab/components"
)

// Start starts both, and stops them when the test ends. Components that the cache lacks are built first. It returns how
// an administrator reaches the API.
func Start(ctx context.Context, t *testing.T, version string) *rest.Config {
	t.Helper()
	config, stop, err := Run(ctx, version, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	return config
}

// patience is how long etcd and the API server may take to start, and to end, on a machine with other work.
const patience = 5 * time.Minute

// Run does the same for whoever calls stop. What controller-runtime logs in this process is discarded: it starts both.
func Run(ctx context.Context, version string, log func(string, ...any)) (c *rest.Config, stop func() error, err error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return nil, nil, err
	}
	builder := components.NewBuilder(cache, log)
	set, err := builder.Build(ctx, version)
	if err != nil {
		return nil, nil, err
	}
	ctrllog.SetLogger(logr.Discard())
	env := &envtest.Environment{ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience}
	env.ControlPlane = envtest.ControlPlane{
		APIServer: &envtest.APIServer{Path: set.Bin["kube-apiserver"]}, Etcd: &envtest.Etcd{Path: set.Bin["etcd"]},
		KubectlPath: set.Bin["kubectl"],
	}
	if c, err = env.Start(); err != nil {
		return nil, nil, fmt.Errorf("start an API server: %w", err)
	}
	return c, env.Stop, nil
}
