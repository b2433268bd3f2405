package fleet

import (
	"context"
	"fmt"
	"net/netip"
)

// AddHost boots one more host, a spare one when the manifest shall not name it, and rewrites the lab's files. A new
// control plane is put behind the load balancer too.
func (l *Lab) AddHost(ctx context.Context, role Role, spare bool) (*Host, error) {
	subnet, err := netip.ParsePrefix(l.Subnet)
	if err != nil {
		return nil, fmt.Errorf("lab %s: %w", l.Name, err)
	}
	prefix, first := "cp", controlPlaneByte
	if role == Worker {
		prefix, first = "worker", workerByte
	}
	n := 1
	for _, host := range l.byRole(role) {
		n = max(n, host.ordinal()+1)
	}
	host := l.newHost(fmt.Sprintf("%s-%d", prefix, n), role, at(subnet, first+n-1))
	host.Spare = spare
	if err := l.boot(ctx, host); err != nil {
		return nil, err
	}
	l.Hosts = append(l.Hosts, host)
	if role == ControlPlane && !spare {
		if err := l.configureLoadBalancer(ctx); err != nil {
			return nil, err
		}
	}
	return host, l.save()
}

// SetSpare takes a host out of the manifest or puts it in; the host itself is left alone. A control plane goes behind
// the load balancer or away from it accordingly.
func (l *Lab) SetSpare(ctx context.Context, host *Host, spare bool) error {
	host.Spare = spare
	if host.Role == ControlPlane {
		if err := l.configureLoadBalancer(ctx); err != nil {
			return err
		}
	}
	return l.save()
}

// Rebuild replaces a host by a new machine with the same name and address: its disk is empty, its SSH keys are new.
func (l *Lab) Rebuild(ctx context.Context, host *Host) error {
	if err := removeContainers(ctx, host.Container); err != nil {
		return fmt.Errorf("rebuild %s: %w", host.Name, err)
	}
	if err := l.boot(ctx, host); err != nil {
		return err
	}
	if host.Role == LoadBalancer {
		if err := l.configureLoadBalancer(ctx); err != nil {
			return err
		}
	}
	return l.save()
}
