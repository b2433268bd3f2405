package main

import (
	"context"
	"io"
	"os"
	"syscall"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// bareLab is the lab of installations with every host as if it had just been delivered. Its load balancer stays.
func (b *bench) bareLab(ctx context.Context) error {
	return b.bareLabOf(ctx, b.labShape, components.DefaultKubernetesVersion)
}

// bareLabOf is a lab of that shape, for that Kubernetes version. One of another shape is taken down.
func (b *bench) bareLabOf(ctx context.Context, want shape, version string) error {
	b.applied = false
	if b.lab != nil && (shape{len(b.lab.ControlPlanes()), len(b.lab.Workers())}) != want {
		if err := b.lab.Down(ctx); err != nil {
			return err
		}
		b.lab = nil
	}
	if b.lab == nil {
		lab, err := fleet.Up(ctx, fleet.Options{
			Name: b.labName, ControlPlanes: want.controlPlanes, Workers: want.workers, KubernetesVersion: version,
			Ephemeral: true, Log: b.log,
		})
		b.lab = lab
		return err
	}
	if b.lab.KubernetesVersion != version {
		if err := b.lab.Want(ctx, version, b.log); err != nil {
			return err
		}
	}
	for _, h := range b.lab.Hosts {
		if h.Role == fleet.LoadBalancer {
			continue
		}
		if err := b.lab.Rebuild(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// settle makes runs alike: what they will read is in memory, and nothing of an earlier run waits to be written.
func settle(files ...string) error {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, f)
		_ = f.Close()
		if err != nil {
			return err
		}
	}
	syscall.Sync()
	return nil
}
