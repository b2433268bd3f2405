//go:build e2e

package e2e

import (
	"context"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

type condition = func(context.Context) error

func readyAPI(host *fleet.Host) condition {
	return func(ctx context.Context) error { return operator.ReadyAPI(ctx, host) }
}

// allReady waits until exactly the members are nodes, and Ready.
func allReady(s *scenario) condition {
	return func(ctx context.Context) error { return s.AllReady(ctx, hostnamesOf(s.Members())...) }
}

// apiAnswers waits until the API server behind the load balancer is ready.
func apiAnswers(s *scenario) condition {
	return func(ctx context.Context) error {
		_, err := s.Kube(ctx, "get", "--raw", "/readyz", "--request-timeout=3s")
		return err
	}
}

// writesObject waits until an object can be written through the load balancer.
func writesObject(s *scenario, name string) condition {
	return func(ctx context.Context) error {
		object := "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}"
		_, err := s.Feed(ctx, object, "apply", "-f", "-", "--request-timeout=5s")
		return err
	}
}
