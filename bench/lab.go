package main

import (
	"context"
	"io"
	"os"
	"syscall"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// bareLab returns the lab for installations, with new hosts. Its load balancer stays.
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

// settleDisks gives every run the same start: it reads the files into memory and waits until earlier writes are on
// disk.
func settleDisks(files ...string) error {
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
