// Package apiserver runs the lab's etcd and kube-apiserver as processes of this machine, to test objects against a real
// API server. There are no nodes, no scheduler and no controllers.
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

// Start starts both, and stops them when the test ends. It first builds components that the cache lacks. It returns an
// administrator's access to the API.
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

// patience limits the start and the end of etcd and the API server, on a busy machine.
const patience = 5 * time.Minute

// Run is like Start, without a test: the caller must call stop. It discards the logs of controller-runtime in this
// process, which starts both.
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
