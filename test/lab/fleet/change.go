package fleet

import (
	"context"
	"fmt"
	"net/netip"
)

// AddHost boots another host and rewrites the lab's files. The manifest does not list a spare host. The load balancer
// also gets a new control plane.
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
		n = max(n, host.ordinalOf()+1)
	}
	host := l.newHost(fmt.Sprintf("%s-%d", prefix, n), role, addressAt(subnet, first+n-1))
	host.Spare = spare
	if err := l.bootHost(ctx, host); err != nil {
		return nil, err
	}
	l.Hosts = append(l.Hosts, host)
	if role == ControlPlane && !spare {
		if err := l.configureLoadBalancer(ctx); err != nil {
			return nil, err
		}
	}
	return host, l.saveFiles()
}

// SetSpare removes a host from the manifest or adds it, and updates the load balancer for a control plane. It does not
// change the host.
func (l *Lab) SetSpare(ctx context.Context, host *Host, spare bool) error {
	host.Spare = spare
	if host.Role == ControlPlane {
		if err := l.configureLoadBalancer(ctx); err != nil {
			return err
		}
	}
	return l.saveFiles()
}

// Rebuild replaces a host by a new machine of the same name and address, with an empty disk and new SSH keys.
func (l *Lab) Rebuild(ctx context.Context, host *Host) error {
	if err := removeContainers(ctx, host.Container); err != nil {
		return fmt.Errorf("rebuild %s: %w", host.Name, err)
	}
	if err := l.bootHost(ctx, host); err != nil {
		return err
	}
	if host.Role == LoadBalancer {
		if err := l.configureLoadBalancer(ctx); err != nil {
			return err
		}
	}
	return l.saveFiles()
}
