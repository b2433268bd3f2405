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
	b.applied = false
	if b.lab == nil {
		lab, err := fleet.Up(ctx, fleet.Options{
			Name: b.labName, ControlPlanes: b.controlPlanes, Workers: b.workers,
			KubernetesVersion: components.DefaultKubernetesVersion, Ephemeral: true, Log: b.log,
		})
		b.lab = lab
		return err
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
