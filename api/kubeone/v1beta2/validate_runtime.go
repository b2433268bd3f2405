package v1beta2

import (
	"crypto/tls"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (f *findings) containerd(r ContainerRuntimeConfig) {
	if r.Docker != nil {
		f.warnf("containerRuntime.docker", "remove it",
			"Kubernetes no longer supports Docker; kubeone uses containerd")
	}
	if r.Containerd == nil {
		return
	}
	f.imageName("containerRuntime.containerd.sandboxImage", r.Containerd.SandboxImage)
	const path = "containerRuntime.containerd.registries"
	taken := map[string]string{}
	for _, name := range sortedKeys(r.Containerd.Registries) {
		at := Child(path, name)
		host := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://"), "/")
		message, hint := RegistryProblem(name)
		switch other := taken[strings.ToLower(host)]; {
		case name == "_default":
			f.errorf(at, `use "*" for all other registries`,
				"is the name that containerd uses for all other registries")
		case other != "":
			f.errorf(at, "merge them", "is the same registry as %q", other)
		case name != "*" && message != "":
			f.errorf(at, hint, "%s", message)
		}
		taken[strings.ToLower(host)] = name
		f.registryAuth(Child(at, "auth"), name, r.Containerd.Registries[name].Auth)
		for i, mirror := range r.Containerd.Registries[name].Mirrors {
			f.mirror(Item(at+".mirrors", i), mirror)
		}
	}
}

var registryForm = regexp.MustCompile(`^([0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// registryHost reports whether the text is host[:port]. Hosts use it as the name of a directory.
func registryHost(s string) bool { return registryForm.MatchString(s) }

func (f *findings) mirror(path, mirror string) {
	raw := mirror
	if !strings.Contains(raw, "://") {
		raw = "https://" + raw
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		f.errorf(path, "use a URL or a host name, such as https://mirror.example.com",
			"is neither a URL nor a host name")
	case u.User != nil:
		f.errorf(path, "move them to auth", "contains a user and password")
	}
}

func (f *findings) components(c *ControlPlaneComponents) {
	if c == nil {
		return
	}
	const path = "controlPlaneComponents"
	f.component(path+".apiServer", c.APIServer)
	f.component(path+".controllerManager", c.ControllerManager)
	f.component(path+".scheduler", c.Scheduler)
	if c.Etcd != nil {
		f.etcd(path+".etcd", *c.Etcd)
	}
}

var (
	flagForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	gateForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
)

func (f *findings) component(path string, c *ControlPlaneComponentConfig) {
	if c == nil {
		return
	}
	for _, flag := range sortedKeys(c.Flags) {
		at := Child(path+".flags", flag)
		switch {
		case strings.TrimLeft(flag, "-") == "feature-gates":
			f.errorf(at, "use featureGates", "feature gates cannot be set here")
		case !flagForm.MatchString(flag):
			f.errorf(at, "write the flag name without leading dashes, and its value after a colon",
				"%q is not a valid flag name", flag)
		}
	}
	for _, gate := range sortedKeys(c.FeatureGates) {
		if !gateForm.MatchString(gate) {
			f.errorf(Child(path+".featureGates", gate),
				"write the name of the feature gate, and true or false after a colon",
				"%q is not a valid feature gate name", gate)
		}
	}
}

// smallestQuota is etcd's default limit of its database, in bytes.
const smallestQuota = 2 << 30

func (f *findings) etcd(path string, e EtcdConfig) {
	if e.QuotaBackendBytes != 0 && e.QuotaBackendBytes < smallestQuota {
		f.errorf(path+".quotaBackendBytes", "", "%d is less than the etcd default of 2 GiB (%d)",
			e.QuotaBackendBytes, smallestQuota)
	}
	if !slices.Contains([]string{"", "periodic", "revision"}, e.AutoCompactionMode) {
		f.errorf(path+".autoCompactionMode", "use periodic or revision", "%q is not supported", e.AutoCompactionMode)
	}
	if r := e.AutoCompactionRetention; r != "" && !isRetention(r, e.AutoCompactionMode) {
		f.errorf(path+".autoCompactionRetention", "use a duration such as 8h, or a number in mode revision",
			"%q is not a valid retention", r)
	}
}

func isRetention(r, mode string) bool {
	if _, err := strconv.ParseUint(r, 10, 63); err == nil {
		return true
	}
	d, err := time.ParseDuration(r)
	return err == nil && d >= 0 && mode != "revision"
}

func (f *findings) cipherSuites(t TLSCipherSuites) {
	known := map[string]bool{}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		known[suite.Name] = !suite.Insecure
	}
	check := func(path string, names []string) {
		for i, name := range names {
			if safe, ok := known[name]; ok && !safe {
				f.warnf(Item(path, i), "remove it, unless an old client needs it",
					"%s is a weak cipher suite", name)
			} else if !ok {
				f.errorf(Item(path, i), "use a name from Go's crypto/tls, such as "+
					"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "%q is not a cipher suite", name)
			}
		}
	}
	check("tlsCipherSuites.apiServer", t.APIServer)
	check("tlsCipherSuites.etcd", t.Etcd)
	check("tlsCipherSuites.kubelet", t.Kubelet)
}
