package manifest

import (
	"cmp"
	"fmt"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
	"maps"
	"strconv"
	"strings"
	"time"
)

// desiredCluster converts the manifest to the type that the other stages use. It does not set the digest.
func (l *loader) desiredCluster() desired.Cluster {
	c := l.cluster
	return desired.Cluster{
		Name:              c.Name,
		KubernetesVersion: c.Versions.Kubernetes,
		Endpoint: desired.Endpoint{
			Host: c.APIEndpoint.Host, Port: c.APIEndpoint.Port, AlternativeNames: c.APIEndpoint.AlternativeNames,
		},
		Network:      newNetwork(c.ClusterNetwork, c.Features),
		ControlPlane: l.newHosts(c.ControlPlane.Hosts, desired.ControlPlane),
		Workers:      l.newHosts(c.StaticWorkers.Hosts, desired.Worker),
		Containerd:   newContainerd(c.ContainerRuntime.Containerd),
		Proxy: desired.Proxy{
			HTTP:    v1beta2.WithoutUser(c.Proxy.HTTP),
			HTTPS:   v1beta2.WithoutUser(c.Proxy.HTTPS),
			NoProxy: c.Proxy.NoProxy,
			HasAuth: c.Proxy.HTTP != v1beta2.WithoutUser(c.Proxy.HTTP) ||
				c.Proxy.HTTPS != v1beta2.WithoutUser(c.Proxy.HTTPS),
		},
		Registry: newRegistry(c.RegistryConfiguration),
		Logging: desired.Logging{
			MaxSize:  c.LoggingConfig.ContainerLogMaxSize,
			MaxFiles: c.LoggingConfig.ContainerLogMaxFiles,
		},
		Kubelet:         desired.Kubelet(c.KubeletConfig),
		TLSCipherSuites: desired.TLSCipherSuites(c.TLSCipherSuites),
		Components:      newComponents(c.ControlPlaneComponents),
		CABundle:        caBundle(c),
		MetricsServer:   l.metricsServer(),
		NodeLocalDNS:    l.nodeLocalDNS(),
		EmbeddedAddons:  l.embeddedNames,
		HostAddons:      l.hostAddons,
		ReplacedAddons:  l.replaced,
		ExternalCloud:   l.externalCloud(),
		EncryptSecrets:  c.Features.EncryptionProviders != nil && c.Features.EncryptionProviders.Enable,
		Certificates: desired.Certificates{
			ValidityPeriod:   c.CertificateAuthority.CertificateValidityPeriod,
			CAValidityPeriod: c.CertificateAuthority.CACertificateValidityPeriod,
		},
		Preflight:     desired.Preflight(c.Preflight),
		Hardening:     c.Hardening,
		Firewall:      cmp.Or(c.Firewall, v1beta2.FirewallManage),
		NoAuditLog:    c.Features.StaticAuditLog != nil && !c.Features.StaticAuditLog.Enable,
		Upgrade:       newUpgrade(c.Upgrade),
		Backup:        l.newBackup(c.Backup),
		Hooks:         newHooks(c.Hooks),
		NotCarriedOut: c.NotCarriedOut(),

		SecurityNotCarriedOut: c.SecurityNotCarriedOut(),
	}
}

func newNetwork(n v1beta2.ClusterNetworkConfig, f v1beta2.Features) desired.Network {
	out := desired.Network{
		PodSubnet:        n.PodSubnet,
		ServiceSubnet:    n.ServiceSubnet,
		IPFamily:         n.IPFamily,
		DNSDomain:        n.ServiceDomainName,
		NodePortRange:    n.NodePortRange,
		NodeCIDRMaskSize: *n.NodeCIDRMaskSizeIPv4,
		CNI:              newCNI(*n.CNI),
		KubeProxy:        newKubeProxy(*n.KubeProxy),
		DNS:              newDNS(f),
	}
	if out.IsDualStack() {
		out.PodSubnetIPv6, out.ServiceSubnetIPv6 = n.PodSubnetIPv6, n.ServiceSubnetIPv6
		out.NodeCIDRMaskSizeIPv6 = *n.NodeCIDRMaskSizeIPv6
	}
	return out
}

// metricsServer returns whether the manifest wants metrics-server; nil if it does not say.
func (l *loader) metricsServer() *bool {
	if m := l.cluster.Features.MetricsServer; m != nil && m.Enable != nil {
		return m.Enable
	}
	return l.listedMetricsServer
}

// nodeLocalDNS returns whether the manifest wants the DNS cache; nil if it does not say.
func (l *loader) nodeLocalDNS() *bool {
	if n := l.cluster.Features.NodeLocalDNS; n != nil && n.Deploy != nil {
		return n.Deploy
	}
	if c := l.cluster.ClusterNetwork.CNI.Cilium; c != nil && c.EnableLocalRedirectPolicy {
		return new(false) // pods reach the cache in another way
	}
	return l.listedNodeLocalDNS
}

func newDNS(f v1beta2.Features) desired.DNS {
	if f.CoreDNS == nil {
		return desired.DNS{}
	}
	out := desired.DNS{Budget: f.CoreDNS.DeployPodDisruptionBudget, Repository: f.CoreDNS.ImageRepository}
	if n := f.CoreDNS.Replicas; n != nil {
		out.Replicas = *n
	}
	return out
}

func newCNI(c v1beta2.CNI) desired.CNI {
	out := desired.CNI{Name: c.Name(), Supported: plugins.Names(), Releases: plugins.Charted()}
	if c.Canal != nil {
		out.MTU = c.Canal.MTU
	}
	if s := c.Cilium; s != nil {
		out.Features = desired.CNIFeatures{
			ReplacesKubeProxy: s.ReplacesKubeProxy(), Hubble: s.EnableHubble, L2Announcements: s.EnableL2Announcements,
			GatewayAPI: s.EnableGatewayAPI, LocalRedirects: s.EnableLocalRedirectPolicy,
		}
		out.Values, out.Version = s.HelmValues, s.Version
	}
	p, err := plugins.FindVersion(out.Name, out.Version)
	if err != nil {
		return out // it is not deployed, or checkPluginVersion reports the version
	}
	out.Files, out.Ports, out.Version = p.Config(desired.Cluster{}).Files(), p.Ports(out), p.Version()
	return out
}

func newKubeProxy(k v1beta2.KubeProxyConfig) desired.KubeProxy {
	out := desired.KubeProxy{Skip: k.SkipInstallation, Mode: "iptables"}
	switch {
	case k.IPVS != nil:
		ipvs := desired.IPVS(*k.IPVS)
		out.Mode, out.IPVS = "ipvs", &ipvs
	case k.NFTables != nil:
		out.Mode = "nftables"
	}
	if k.Conntrack != nil {
		out.Conntrack = &desired.Conntrack{MaxPerCore: *k.Conntrack.MaxPerCore, Min: *k.Conntrack.Min}
	}
	return out
}

func (l *loader) newHosts(hosts []v1beta2.HostConfig, role desired.Role) []desired.Host {
	var out []desired.Host
	for _, h := range hosts {
		out = append(out, desired.Host{
			ID:             cmp.Or(h.ID, h.PublicAddress),
			HasOwnID:       h.ID != "",
			Role:           role,
			PublicAddress:  h.PublicAddress,
			PrivateAddress: h.PrivateAddress,
			IPv6Addresses:  h.IPv6Addresses,
			Hostname:       h.Hostname,
			IsLeader:       h.IsLeader,
			Labels:         maps.Clone(h.Labels),
			Annotations:    maps.Clone(h.Annotations),
			Taints:         newTaints(h.Taints),
			Kubelet:        desired.Kubelet(h.Kubelet),
			Versions:       desired.Versions(h.Versions),
			SSH:            l.newSSH(h.SSHConfig),
		})
	}
	return out
}

func newTaints(taints []v1beta2.Taint) []desired.Taint {
	out := make([]desired.Taint, len(taints))
	for i, t := range taints {
		out[i] = desired.Taint(t)
	}
	return out
}

func (l *loader) newSSH(s v1beta2.SSHConfig) desired.SSH {
	return desired.SSH{
		Port:                 s.SSHPort,
		User:                 s.SSHUsername,
		KeyFile:              l.absolutePath(s.SSHPrivateKeyFile),
		CertFile:             l.absolutePath(s.SSHCertFile),
		AgentSocket:          s.SSHAgentSocket,
		HostPublicKey:        parseHostKey(s.SSHHostPublicKey),
		Bastion:              s.Bastion,
		BastionPort:          s.BastionPort,
		BastionUser:          s.BastionUser,
		BastionHostPublicKey: parseHostKey(s.BastionHostPublicKey),
		BastionKeyFile:       l.absolutePath(s.BastionPrivateKeyFile),
	}
}

func parseHostKey(key string) string {
	if key == "" {
		return ""
	}
	wire, _ := v1beta2.HostKey(key) // checked by Validate
	return wire
}

func newContainerd(c *v1beta2.ContainerRuntimeContainerd) desired.Containerd {
	if c == nil {
		return desired.Containerd{}
	}
	out := desired.Containerd{
		SandboxImage: c.SandboxImage,
		DeviceOwnershipFromSecurityContext: c.DeviceOwnershipFromSecurityContext != nil &&
			*c.DeviceOwnershipFromSecurityContext,
	}
	for host, r := range c.Registries {
		if out.Registries == nil {
			out.Registries = map[string]desired.Mirrored{}
		}
		out.Registries[host] = desired.Mirrored{
			Mirrors:            r.Mirrors,
			OverridePath:       r.OverridePath,
			InsecureSkipVerify: r.TLSConfig != nil && r.TLSConfig.InsecureSkipVerify,
			HasAuth:            r.Auth != nil,
		}
	}
	return out
}

func newRegistry(r *v1beta2.RegistryConfiguration) desired.Registry {
	if r == nil {
		return desired.Registry{}
	}
	return desired.Registry{Overwrite: r.OverwriteRegistry, Insecure: r.InsecureRegistry}
}

func newComponents(c *v1beta2.ControlPlaneComponents) desired.Components {
	if c == nil {
		return desired.Components{}
	}
	out := desired.Components{
		APIServer:         newComponent(c.APIServer),
		ControllerManager: newComponent(c.ControllerManager),
		Scheduler:         newComponent(c.Scheduler),
	}
	if c.Etcd != nil {
		out.Etcd = desired.EtcdComponent(*c.Etcd)
	}
	return out
}

func newComponent(c *v1beta2.ControlPlaneComponentConfig) desired.Component {
	if c == nil {
		return desired.Component{}
	}
	return desired.Component(*c)
}

// caBundle returns the additional CA certificates that hosts trust: certificateAuthority.bundle, or caBundle if that is
// empty.
func caBundle(c *v1beta2.KubeOneCluster) string {
	if c.CertificateAuthority.Bundle != "" {
		return c.CertificateAuthority.Bundle
	}
	return c.CABundle
}

func trimSlash(url string) string {
	return strings.TrimRight(url, "/")
}

func newUpgrade(u v1beta2.UpgradeConfig) desired.Upgrade {
	unavailable, _ := ParseShare(u.MaxUnavailable) // checked by Validate
	out := desired.Upgrade{
		MaxUnavailable: unavailable,
		MaxParallel:    u.MaxParallel,
		Canary:         *u.Canary,
		Drain: desired.Drain{
			Timeout:   parseDuration(u.Drain.Timeout),
			OnTimeout: desired.OnTimeout(u.Drain.OnTimeout),
		},
	}
	if u.Drain.GracePeriod != "" {
		period := parseDuration(u.Drain.GracePeriod)
		out.Drain.GracePeriod = &period
	}
	return out
}

func (l *loader) newBackup(b v1beta2.BackupConfig) desired.Backup {
	out := desired.Backup{Recipients: b.Recipients, Target: b.Target, Schedule: parseDuration(b.Schedule), Keep: *b.Keep}
	if !strings.Contains(b.Target, "://") {
		out.Target = l.absolutePath(b.Target)
	}
	return out
}

func newHooks(hooks []v1beta2.Hook) []desired.Hook {
	var out []desired.Hook
	for _, h := range hooks {
		hook := desired.Hook{
			Name: h.Name, When: desired.Before, Activity: desired.Activity(h.Before),
			OnHost: h.RunOn == v1beta2.HookOnHost, Command: h.Command, Timeout: parseDuration(h.Timeout),
		}
		switch {
		case h.After != "":
			hook.When, hook.Activity = desired.After, desired.Activity(h.After)
		case h.OnFailure:
			hook.When, hook.Activity = desired.Failed, desired.Applying
		}
		out = append(out, hook)
	}
	return out
}

func parseDuration(text string) time.Duration {
	d, _ := time.ParseDuration(text) // checked by Validate
	return d
}

// ParseShare parses upgrade.maxUnavailable: a number ("2") or a percentage ("25%"). Numbers below 1 and percentages
// outside 1 to 100 are errors.
func ParseShare(text string) (desired.Share, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || percent && n > 100 {
		return desired.Share{}, fmt.Errorf("%q is neither a positive number nor a percentage up to 100%%", text)
	}
	if percent {
		return desired.Share{Percent: n}, nil
	}
	return desired.Share{Count: n}, nil
}
