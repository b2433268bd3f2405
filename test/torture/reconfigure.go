package main

import (
	"context"
	"fmt"
	"strings"

	"kubeone/test/e2e/operator"
)

// changes are settings of the kubelet and the container runtime on all hosts, and of the API server.
const changes = `
kubeletConfig:
  maxPods: 90
containerRuntime:
  containerd:
    registries:
      registry.example.com:
        mirrors: [https://mirror.example.com]
controlPlaneComponents:
  apiServer:
    flags:
      event-ttl: 2h0m0s
`

// addSettings adds the settings to a manifest that has none of them.
func addSettings(manifest string) string { return strings.TrimRight(manifest, "\n") + "\n" + changes }

// tortureReconfigure kills a change of settings at every step boundary. Each climb starts with a cluster without them.
func (s settings) tortureReconfigure(ctx context.Context) error {
	const workers = 2
	begin := func(ctx context.Context, o *operator.Operator, first bool) error {
		if !first {
			if err := checkSettings(ctx, o); err != nil {
				return err
			}
		}
		if err := o.WriteManifest(); err != nil {
			return err
		}
		if err := runSuccessfully(ctx, o, "apply", "-y"); err != nil {
			return err
		}
		return o.WriteManifest(addSettings)
	}
	return s.climbOnLab(ctx, "reconfigure", newer, workers, begin)
}

// checkSettings checks independently of kubeone that all hosts have the settings after the last climb.
func checkSettings(ctx context.Context, o *operator.Operator) error {
	for on, command := range map[string]string{
		"kubelet": "grep -qx 'maxPods: 90' /var/lib/kubelet/config.yaml",
		"mirror":  "grep -q mirror.example.com /etc/containerd/certs.d/registry.example.com/hosts.toml",
	} {
		if _, err := operator.OnEach(ctx, o.Members(), command); err != nil {
			return fmt.Errorf("the setting of the %s is not everywhere: %w", on, err)
		}
	}
	_, err := operator.OnEach(ctx, o.Lab.ControlPlanes(),
		"tr '\\0' '\\n' </proc/$(pgrep -x kube-apiserver)/cmdline | grep -qxF -e --event-ttl=2h0m0s")
	if err != nil {
		return fmt.Errorf("the API server's flag is not everywhere: %w", err)
	}
	return nil
}
