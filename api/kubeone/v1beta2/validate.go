package v1beta2

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Validate returns all mistakes and warnings for a manifest with defaults. It reads no files: the caller must have read
// certificateAuthority.file into the bundle.
func (c *KubeOneCluster) Validate() []Finding {
	f := &findings{}
	f.name(c.Name)
	f.version("versions.kubernetes", c.Versions.Kubernetes)
	f.hosts(c)
	f.endpoint(c.APIEndpoint)
	f.cloudProvider(c)
	f.network(c)
	f.kubelet("kubeletConfig", c.KubeletConfig, KubeletConfig{})
	f.containerd(c.ContainerRuntime)
	f.components(c.ControlPlaneComponents)
	f.encryption(c)
	f.cipherSuites(c.TLSCipherSuites)
	f.environment(c)
	f.authorities(c)
	f.features(c.Features)
	f.nodeLocalDNS(c.Features.NodeLocalDNS, c.ClusterNetwork.CNI)
	f.hardening(c.Hardening)
	f.firewall(c.Firewall)
	f.upgrade(c.Upgrade)
	f.backup(c.Backup)
	f.hooks(c.Hooks)
	f.names(c)
	f.checkControlCharacters(c)
	return f.list
}

func (f *findings) name(name string) {
	if name == "" {
		f.missing("name", "set the cluster name here or in the Terraform output")
		return
	}
	for range validation.IsDNS1123Subdomain(name) {
		f.errorf("name", "use lowercase letters, digits, dashes and dots", "%q is not a DNS-1123 subdomain", name)
		return
	}
}

func (f *findings) endpoint(e APIEndpoint) {
	if e.Host != "" {
		f.address("apiEndpoint.host", e.Host)
	}
	f.port("apiEndpoint.port", e.Port)
	seen := map[string]int{}
	for i, name := range e.AlternativeNames {
		at := Item("apiEndpoint.alternativeNames", i)
		if len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
			f.address(at, name)
		}
		if first, ok := seen[name]; ok {
			f.errorf(at, "remove one of them", "%q is already in apiEndpoint.alternativeNames[%d]", name, first)
			continue
		}
		seen[name] = i
	}
}

// port accepts 0, which means unset.
func (f *findings) port(path string, port int) {
	if port < 0 || port > 65535 {
		f.errorf(path, "", "%d is not a valid port; ports are 1 to 65535", port)
	}
}

// duration accepts "", which means unset.
func (f *findings) duration(path, value string) {
	if value == "" {
		return
	}
	if d, err := time.ParseDuration(value); err != nil || d < 0 {
		f.errorf(path, "use a Go duration such as 90s, 2m or 8760h", "%q is not a valid duration", value)
	}
}

// environment checks the proxy, the registry, log rotation and the mirror.
func (f *findings) environment(c *KubeOneCluster) {
	f.url("proxy.http", c.Proxy.HTTP)
	f.url("proxy.https", c.Proxy.HTTPS)
	f.url("artifacts.mirror", c.Artifacts.Mirror)
	if u, err := url.Parse(c.Artifacts.Mirror); err == nil && u.User != nil {
		f.errorf("artifacts.mirror", "let the mirror identify hosts by their addresses instead",
			"a user and password cannot be kept secret here")
	}
	if r := c.RegistryConfiguration; r != nil {
		f.registry(*r)
	}
	if size := c.LoggingConfig.ContainerLogMaxSize; !isSize(size) {
		f.errorf("loggingConfig.containerLogMaxSize", "use a whole number of bytes, such as 100Mi",
			"%q is not a valid size", size)
	}
	if n := c.LoggingConfig.ContainerLogMaxFiles; n < 2 {
		f.errorf("loggingConfig.containerLogMaxFiles", "", "%d is too few: the kubelet needs at least 2", n)
	}
}

// url accepts "", which means unset.
func (f *findings) url(path, raw string) {
	if raw == "" {
		return
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The message does not repeat the text, which may hold a password.
		f.errorf(path, "use a URL such as http://proxy.example.com:3128",
			"is not an http:// or https:// URL")
	}
}

func (f *findings) registry(r RegistryConfiguration) {
	const path = "registryConfiguration.overwriteRegistry"
	switch {
	case r.InsecureRegistry && r.OverwriteRegistry == "":
		f.errorf("registryConfiguration.insecureRegistry", "set overwriteRegistry too",
			"applies only to overwriteRegistry, which is not set")
	default:
		f.imageRepository(path, "registry.example.com/kubernetes", r.OverwriteRegistry)
	}
}

func (f *findings) authorities(c *KubeOneCluster) {
	ca := c.CertificateAuthority
	f.validity("certificateAuthority.certificateValidityPeriod", ca.CertificateValidityPeriod)
	f.validity("certificateAuthority.caCertificateValidityPeriod", ca.CACertificateValidityPeriod)
	f.pem("certificateAuthority.bundle", ca.Bundle)
	f.pem("caBundle", c.CABundle)
	if c.CABundle == "" {
		return
	}
	f.warnf("caBundle", "move it to certificateAuthority.bundle", "is deprecated")
	if ca.Bundle != "" && ca.Bundle != c.CABundle {
		f.errorf("caBundle", "keep only certificateAuthority.bundle",
			"differs from certificateAuthority.bundle, and only one of them can be used")
	}
}

// validity accepts "", which means unset. A certificate with a lifetime of 0s would expire at once.
func (f *findings) validity(path, value string) {
	if value != "" {
		f.every(path, value, time.Minute, time.Second)
	}
}

// pem accepts "", which means unset.
func (f *findings) pem(path, bundle string) {
	if bundle == "" {
		return
	}
	if problem := BundleProblem(bundle); problem != "" {
		f.errorf(path, "use PEM certificates (-----BEGIN CERTIFICATE-----)", "%s", problem)
	}
}

// BundleProblem returns the first mistake in a bundle of PEM certificates, or "".
func BundleProblem(bundle string) string {
	rest, found := []byte(bundle), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return "contains a " + block.Type + " block; a bundle can contain only certificates"
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "contains a certificate that cannot be parsed: " + err.Error()
		}
		found++
	}
	if found == 0 {
		return "contains no PEM certificate"
	}
	if strings.TrimSpace(string(rest)) != "" {
		return "contains other text after the last certificate"
	}
	return ""
}

var preflightName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)

// names checks fields that only name things.
func (f *findings) names(c *KubeOneCluster) {
	for i, name := range c.Preflight.IgnoreErrors {
		if at := Item("preflight.ignoreErrors", i); !preflightName.MatchString(name) {
			f.errorf(at, "use a name that kubeadm prints, such as SystemVerification or Port-10250",
				"%q is not the name of a preflight check", name)
		} else if strings.EqualFold(name, "all") {
			f.errorf(at, "list the checks to ignore", "ignoring all checks is not supported")
		}
	}
	for i, w := range c.DynamicWorkers {
		f.deploymentName(Item("dynamicWorkers", i)+".name", w.Name, c.DynamicWorkers[:i])
		f.ofMachines(Item("dynamicWorkers", i)+".providerSpec", w.ProviderSpec)
		if w.Replicas != nil && *w.Replicas < 0 {
			f.errorf(Item("dynamicWorkers", i)+".replicas", "", "%d is less than 0", *w.Replicas)
		}
	}
	if dns := c.Features.CoreDNS; dns != nil && dns.Replicas != nil && *dns.Replicas < 1 {
		f.errorf("features.coreDNS.replicas", "without cluster DNS, Service names cannot be resolved",
			"%d is less than 1", *dns.Replicas)
	}
	if dns := c.Features.CoreDNS; dns != nil {
		f.imageRepository("features.coreDNS.imageRepository", "registry.example.com/coredns", dns.ImageRepository)
	}
	f.nodeSets(c.ControlPlane.NodeSets)
	f.addons(c)
}

// deploymentName checks the name of a MachineDeployment, which is also the value of a label.
func (f *findings) deploymentName(path, name string, before []DynamicWorkerConfig) {
	switch {
	case name == "":
		f.missing(path, "")
	case len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsValidLabelValue(name)) > 0:
		f.errorf(path, "use at most 63 lowercase letters, digits, dashes and dots",
			"%q is not a valid MachineDeployment name", name)
	case slices.ContainsFunc(before, func(o DynamicWorkerConfig) bool { return o.Name == name }):
		f.errorf(path, "", "%q is already used by another entry", name)
	}
}

func (f *findings) nodeSets(sets []NodeSet) {
	for i, s := range sets {
		at := Item("controlPlane.nodeSets", i)
		if s.Name == "" {
			f.missing(at+".name", "")
		}
		f.taints(at+".nodeSettings.taints", s.NodeSettings.Taints)
	}
}

// maxReleaseName is Helm's limit.
const maxReleaseName = 53

// locationOfChart checks the URL of a chart or a chart repository.
func (f *findings) locationOfChart(path, raw string) {
	if raw == "" {
		return
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "oci":
		f.errorf(path, "it looks like https://charts.example.com or oci://registry.example.com/charts",
			"is not the location of a chart") // the text may hold a password
	case u.User != nil:
		f.errorf(path, "move them to auth", "contains credentials")
	}
}

func (f *findings) addons(c *KubeOneCluster) {
	if c.Addons != nil && !isFalse(c.Addons.Enable) {
		for i, a := range c.Addons.Addons {
			if a.Name == "" {
				f.missing(Item("addons.addons", i)+".name", "")
			}
		}
	}
	for i, r := range c.HelmReleases {
		f.helmRelease(Item("helmReleases", i), r)
	}
}

func (f *findings) helmRelease(at string, r HelmRelease) {
	f.duration(at+".timeout", r.Timeout)
	switch {
	case r.Chart == "" && r.ChartURL == "":
		f.missing(at+".chart", "set chart or chartURL")
	case r.Chart != "" && r.ChartURL != "":
		f.errorf(at+".chartURL", "remove one of them", "chart is also set")
	}
	f.locationOfChart(at+".repoURL", r.RepoURL)
	f.locationOfChart(at+".chartURL", r.ChartURL)
	if r.Namespace == "" {
		f.missing(at+".namespace", "")
	}
	if name := r.NameOfRelease(); name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 ||
		len(name) > maxReleaseName {
		f.errorf(at+".releaseName", "use lowercase letters, digits and dashes, at most 53 characters",
			"%q is not a valid release name", name)
	}
	if r.ChartURL != "" && r.ReleaseName == "" {
		f.missing(at+".releaseName", "a chart from a URL has no default release name")
	}
}
