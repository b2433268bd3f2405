package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"kubeone/test/lab/components"
)

// Up brings up a lab and returns when every host has booted. On an error it removes everything.
func Up(ctx context.Context, options Options) (*Lab, error) {
	if err := options.setDefaults(); err != nil {
		return nil, err
	}
	cache, err := components.DefaultCache()
	if err != nil {
		return nil, err
	}
	if err := ensureDocker(ctx, cache, options.Log); err != nil {
		return nil, err
	}
	if err := removeLeftovers(ctx, cache, options.Log); err != nil {
		return nil, err
	}
	lab, err := prepareLab(ctx, cache, options)
	if err != nil {
		return nil, err
	}
	if err := lab.bringUp(ctx, cache, options); err != nil {
		// The caller's context may have ended.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, lab.Down(cleanup))
	}
	return lab, nil
}

// Prepare fills the cache for labs with these Kubernetes versions and this network plugin: docker, the hosts' image,
// bundles.
func Prepare(ctx context.Context, versions []string, cni string, log Logf) error {
	cache, err := components.DefaultCache()
	if err != nil {
		return err
	}
	if err := ensureDocker(ctx, cache, log); err != nil {
		return err
	}
	if _, err := baseImage(ctx, cache, "", log); err != nil {
		return err
	}
	for _, version := range versions {
		if _, err := Bundle(ctx, cache, version, cni, nil, log); err != nil {
			return err
		}
	}
	return nil
}

// prepareLab claims the lab's name by creating its folder, and makes everything that does not need the network: image
// and key.
func prepareLab(ctx context.Context, cache components.Cache, options Options) (*Lab, error) {
	root, err := stateRoot(cache)
	if err != nil {
		return nil, err
	}
	image := options.Image
	if image == "" {
		if image, err = baseImage(ctx, cache, options.Debian, options.Log); err != nil {
			return nil, err
		}
	}
	images := map[string]string{}
	for hostname, release := range options.DebianOf {
		if images[hostname], err = baseImage(ctx, cache, release, options.Log); err != nil {
			return nil, err
		}
	}
	lab := &Lab{
		Name: options.Name, KubernetesVersion: options.KubernetesVersion, CNI: options.CNI, Image: image,
		SSHUser: options.SSHUser,
		Network: networkName(options.Name), PinHostKeys: !options.NoPin, Ephemeral: options.Ephemeral,
		Owner: ownProcess(), Images: images, Addons: options.Addons,
		log: options.Log,
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("lab %s: %w", options.Name, err)
	}
	lab.Dir = root + "/" + options.Name
	if err := os.Mkdir(lab.Dir, 0o755); errors.Is(err, os.ErrExist) {
		return nil,
			fmt.Errorf("lab %s exists already (%s): remove it first with the command down", options.Name, lab.Dir)
	} else if err != nil {
		return nil, fmt.Errorf("lab %s: %w", options.Name, err)
	}
	if lab.AuthorizedKey, err = writeKey(lab.Path("id_ed25519"), "kubeone-lab-"+options.Name); err != nil {
		return nil, err
	}
	err = lab.saveFiles()
	return lab, err
}

func (l *Lab) bringUp(ctx context.Context, cache components.Cache, options Options) error {
	subnet, err := createNetwork(ctx, l.Network, l.labelArgs(), options.DualStack)
	if err != nil {
		return err
	}
	l.Subnet, l.Endpoint = subnet.String(), addressAt(subnet, loadBalancerByte)
	if options.DualStack {
		l.SubnetIPv6 = ipv6Subnet(subnet).String()
	}
	resolvConf, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return err
	}
	l.Nameservers = reachableNameservers(string(resolvConf), addressAt(subnet, gatewayByte))
	l.Hosts = l.layOut(subnet, options)
	for hostname := range l.Images {
		if l.Host(hostname) == nil {
			return fmt.Errorf("lab %s has no host %q to choose a release of Debian for", l.Name, hostname)
		}
	}
	booting := fmt.Sprintf("booting %d hosts on %s", len(l.Hosts), l.Subnet)
	if err := options.Log.During(booting, func() error { return l.bootAll(ctx) }); err != nil {
		return err
	}
	if err := l.configureLoadBalancer(ctx); err != nil {
		return err
	}
	if !options.NoBundle {
		if err := l.linkBundle(ctx, cache, options.Log); err != nil {
			return err
		}
	}
	return l.saveFiles()
}

func (l *Lab) bootAll(ctx context.Context) error {
	hosts, ctx := errgroup.WithContext(ctx)
	for _, host := range l.Hosts {
		hosts.Go(func() error { return l.bootHost(ctx, host) })
	}
	return hosts.Wait()
}

// layOut names the hosts and assigns addresses.
func (l *Lab) layOut(subnet netip.Prefix, options Options) []*Host {
	hosts := []*Host{l.newHost("lb", LoadBalancer, addressAt(subnet, loadBalancerByte))}
	for n := 1; n <= options.ControlPlanes; n++ {
		hosts = append(hosts, l.newHost(fmt.Sprintf("cp-%d", n), ControlPlane, addressAt(subnet, controlPlaneByte+n-1)))
	}
	for n := 1; n <= options.Workers+options.SpareWorkers; n++ {
		host := l.newHost(fmt.Sprintf("worker-%d", n), Worker, addressAt(subnet, workerByte+n-1))
		host.Spare = n > options.Workers
		hosts = append(hosts, host)
	}
	return hosts
}

func (l *Lab) newHost(hostname string, role Role, address string) *Host {
	name := l.Name + "-" + hostname
	host := &Host{
		Name: name, Hostname: hostname, Role: role, Container: name, Network: l.Network, Address: address,
		SSHUser: l.SSHUser, SSHKey: l.Path("id_ed25519"),
	}
	if second, err := netip.ParsePrefix(l.SubnetIPv6); err == nil {
		host.AddressIPv6 = ipv6AddressAt(second, int(netip.MustParseAddr(address).As4()[3]))
	}
	return host
}

// bootHost starts a host and waits until it has booted.
func (l *Lab) bootHost(ctx context.Context, host *Host) error {
	image := cmp.Or(l.Images[host.Hostname], l.Image)
	if _, err := runDocker(ctx, runArgs(host, image, l.AuthorizedKey, l.Nameservers, l.labelArgs())...); err != nil {
		return fmt.Errorf("start %s: %w", host.Name, err)
	}
	if err := host.waitBooted(ctx); err != nil {
		return err
	}
	return host.readHostKeys(ctx)
}
