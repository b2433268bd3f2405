//go:build e2e && long

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"kubeone/test/lab/fleet"
)

// cis is an automatic check of the CIS Kubernetes Benchmark 1.11, or one of its manual checks that a program can do.
type cis struct {
	id      string // number in the benchmark
	control bool   // for control-plane hosts only
	fails   func(facts) string
	// warns is the reason why the check fails here, empty when it passes. docs/security.md has the same reasons.
	warns string
}

// facts are the facts of one host that the checks use.
type facts struct {
	args    map[string]map[string]string // flags of components, by component and flag
	files   map[string]string            // "MODE USER:GROUP", by path
	kubelet map[string]any               // configuration
	listens []string                     // addresses and ports
}

// lookAt prints the facts of a host.
const lookAt = `
for name in kube-apiserver kube-controller kube-scheduler etcd kubelet; do
	pid=$(pgrep -x $name | head -n 1)
	[ -z "$pid" ] || tr '\0' '\n' </proc/$pid/cmdline | sed "1d; s/^/arg $name /"
done
find /etc/kubernetes /var/lib/etcd /etc/systemd/system/kubelet.service /var/lib/kubelet/config.yaml /etc/cni/net.d \
	-maxdepth 4 -printf 'file %p %m %u:%g\n' 2>/dev/null
ss -ltnH | awk '{print "listens", $4}'
sed 's/^/kubelet /' /var/lib/kubelet/config.yaml
`

func (s *scenario) readFacts(host *fleet.Host) facts {
	s.Helper()
	text, err := host.Exec(s.Context(), lookAt)
	s.must(err)
	f := facts{args: map[string]map[string]string{}, files: map[string]string{}, kubelet: map[string]any{}}
	var config strings.Builder
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch name, value, _ := strings.Cut(rest, " "); kind {
		case "arg":
			if f.args[name] == nil {
				f.args[name] = map[string]string{}
			}
			flag, is, _ := strings.Cut(strings.TrimLeft(value, "-"), "=")
			f.args[name][flag] = is
		case "file":
			f.files[name] = value
		case "listens":
			f.listens = append(f.listens, name)
		case "kubelet":
			config.WriteString(rest + "\n")
		}
	}
	s.must(yaml.Unmarshal([]byte(config.String()), &f.kubelet))
	if len(f.files) == 0 || len(f.kubelet) == 0 {
		s.Fatalf("%s tells nothing of itself:\n%s", host.Hostname, text)
	}
	return f
}

// fileIsClosed checks that a file has no permission bits other than most. A missing file fails.
func fileIsClosed(path string, most uint64) func(facts) string {
	return func(f facts) string {
		text, ok := f.files[path]
		if !ok {
			return path + " is not there"
		}
		is, err := strconv.ParseUint(strings.Fields(text)[0], 8, 32)
		if err != nil || is&^most != 0 {
			return fmt.Sprintf("%s is %s, want %o at most", path, text, most)
		}
		return ""
	}
}

// fileIsOwned checks a file's owner and group.
func fileIsOwned(path, by string) func(facts) string {
	return func(f facts) string {
		if text := f.files[path]; !strings.HasSuffix(text, " "+by) {
			return fmt.Sprintf("%s is %q, want %s", path, text, by)
		}
		return ""
	}
}

// checkFilesBelow applies a check to all files below a directory with the suffix; there must be at least one.
func checkFilesBelow(dir, suffix string, check func(path string) func(facts) string) func(facts) string {
	return func(f facts) string {
		looked := 0
		for path := range f.files {
			if strings.HasPrefix(path, dir+"/") && strings.HasSuffix(path, suffix) {
				looked++
				if why := check(path)(f); why != "" {
					return why
				}
			}
		}
		if looked == 0 {
			return "there is nothing in " + dir
		}
		return ""
	}
}

// checkFlag checks a component's flag.
func checkFlag(component, name, want string, holds func(value string) bool) func(facts) string {
	return func(f facts) string {
		value, set := f.args[component][name]
		if f.args[component] == nil || !set || !holds(value) {
			return fmt.Sprintf("%s: --%s is %q (set: %t), want %s", component, name, value, set, want)
		}
		return ""
	}
}

func flagIsSet(component, name string) func(facts) string {
	return checkFlag(component, name, "anything", func(value string) bool { return value != "" })
}

func flagIs(component, name, want string) func(facts) string {
	return checkFlag(component, name, want, func(value string) bool { return value == want })
}

func flagIsAtLeast(component, name string, want int) func(facts) string {
	return checkFlag(component, name, strconv.Itoa(want)+" at least", func(value string) bool {
		n, err := strconv.Atoi(value)
		return err == nil && n >= want
	})
}

func flagHas(component, name, item string) func(facts) string {
	return checkFlag(component, name, item+" in it", func(value string) bool {
		return slices.Contains(strings.Split(value, ","), item)
	})
}

// flagHasNot checks that a flag does not contain the item. The flag may be missing.
func flagHasNot(component, name, item string) func(facts) string {
	return func(f facts) string {
		value, set := f.args[component][name]
		if f.args[component] == nil || set && (item == "" || slices.Contains(strings.Split(value, ","), item)) {
			return fmt.Sprintf("%s: --%s is %q", component, name, value)
		}
		return ""
	}
}

// kubeletHas checks a value in the kubelet's configuration, by the path to it.
func kubeletHas(want string, holds func(value any) bool, path ...string) func(facts) string {
	return func(f facts) string {
		var value any = f.kubelet
		for _, name := range path {
			inside, _ := value.(map[string]any)
			value = inside[name]
		}
		if !holds(value) {
			return fmt.Sprintf("the kubelet's %s is %v, want %s", strings.Join(path, "."), value, want)
		}
		return ""
	}
}

func kubeletIs(want any, path ...string) func(facts) string {
	return kubeletHas(fmt.Sprint(want), func(value any) bool { return fmt.Sprint(value) == fmt.Sprint(want) }, path...)
}

// controlPlaneFiles returns the checks 1.1.
func controlPlaneFiles() []cis {
	var out []cis
	add := func(id, warns string, check func(facts) string) {
		out = append(out, cis{"1.1." + id, true, check, warns})
	}
	const kubernetes = "/etc/kubernetes"
	for i, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
		path := kubernetes + "/manifests/" + name + ".yaml"
		add(strconv.Itoa(2*i+1), "", fileIsClosed(path, 0o600))
		add(strconv.Itoa(2*i+2), "", fileIsOwned(path, "root:root"))
	}
	add("9", "", checkFilesBelow("/etc/cni/net.d", "",
		func(path string) func(facts) string { return fileIsClosed(path, 0o600) }))
	add("10", "", checkFilesBelow("/etc/cni/net.d", "",
		func(path string) func(facts) string { return fileIsOwned(path, "root:root") }))
	add("11", "", fileIsClosed("/var/lib/etcd", 0o700))
	add("12", "etcd runs as root, as kubeadm has it, and its data are root's alone",
		fileIsOwned("/var/lib/etcd", "etcd:etcd"))
	for i, name := range []string{"admin", "scheduler", "controller-manager"} {
		path := kubernetes + "/" + name + ".conf"
		add(strconv.Itoa(2*i+13), "", fileIsClosed(path, 0o600))
		add(strconv.Itoa(2*i+14), "", fileIsOwned(path, "root:root"))
	}
	pki := kubernetes + "/pki"
	add("19", "", checkFilesBelow(pki, "", func(path string) func(facts) string {
		return fileIsOwned(path,
			"root:root")
	}))
	add("20", "", checkFilesBelow(pki, ".crt",
		func(path string) func(facts) string { return fileIsClosed(path, 0o644) }))
	add("21", "", checkFilesBelow(pki, ".key",
		func(path string) func(facts) string { return fileIsClosed(path, 0o600) }))
	return out
}

// apiServerChecks returns the checks 1.2 and 3.2.1.
func apiServerChecks() []cis {
	const api = "kube-apiserver"
	notWanted := "it is the cluster's owner who decides: pods, Services and Secrets of a living cluster may need it"
	return inControlPlane(map[string][]func(facts) string{
		"1.2.1":  {flagIsSet(api, "authentication-config")},
		"1.2.2":  {flagHasNot(api, "token-auth-file", "")},
		"1.2.3":  {flagHas(api, "enable-admission-plugins", "DenyServiceExternalIPs")},
		"1.2.4":  {flagIsSet(api, "kubelet-client-certificate"), flagIsSet(api, "kubelet-client-key")},
		"1.2.5":  {flagIsSet(api, "kubelet-certificate-authority")},
		"1.2.6":  {flagIsSet(api, "authorization-mode"), flagHasNot(api, "authorization-mode", "AlwaysAllow")},
		"1.2.7":  {flagHas(api, "authorization-mode", "Node")},
		"1.2.8":  {flagHas(api, "authorization-mode", "RBAC")},
		"1.2.9":  {flagHas(api, "enable-admission-plugins", "EventRateLimit")},
		"1.2.10": {flagHasNot(api, "enable-admission-plugins", "AlwaysAdmit")},
		"1.2.11": {flagHas(api, "enable-admission-plugins", "AlwaysPullImages")},
		"1.2.12": {flagHasNot(api, "disable-admission-plugins", "ServiceAccount")},
		"1.2.13": {flagHasNot(api, "disable-admission-plugins", "NamespaceLifecycle")},
		"1.2.14": {flagHas(api, "enable-admission-plugins", "NodeRestriction")},
		"1.2.15": {flagIs(api, "profiling", "false")},
		"1.2.16": {flagIsSet(api, "audit-log-path")},
		"1.2.17": {flagIsAtLeast(api, "audit-log-maxage", 30)},
		"1.2.18": {flagIsAtLeast(api, "audit-log-maxbackup", 10)},
		"1.2.19": {flagIsAtLeast(api, "audit-log-maxsize", 100)},
		"1.2.20": {flagIsSet(api, "request-timeout")},
		"1.2.21": {flagHasNot(api, "service-account-lookup", "false")},
		"1.2.22": {flagIsSet(api, "service-account-key-file")},
		"1.2.23": {flagIsSet(api, "etcd-certfile"), flagIsSet(api, "etcd-keyfile")},
		"1.2.24": {flagIsSet(api, "tls-cert-file"), flagIsSet(api, "tls-private-key-file")},
		"1.2.25": {flagIsSet(api, "client-ca-file")},
		"1.2.26": {flagIsSet(api, "etcd-cafile")},
		"1.2.27": {flagIsSet(api, "encryption-provider-config")},
		"1.2.29": {flagIsSet(api, "tls-cipher-suites"), flagIs(api, "tls-min-version", "VersionTLS12")},
		"1.2.30": {flagIs(api, "service-account-extend-token-expiration", "false")},
		"3.2.1":  {flagIsSet(api, "audit-policy-file")},
	}, map[string]string{"1.2.3": notWanted, "1.2.9": notWanted, "1.2.11": notWanted, "1.2.27": notWanted})
}

// controllerChecks returns the checks 1.3 and 1.4.
func controllerChecks() []cis {
	const manager, scheduler = "kube-controller", "kube-scheduler" // names in the kernel
	return inControlPlane(map[string][]func(facts) string{
		"1.3.1": {flagIsSet(manager, "terminated-pod-gc-threshold")},
		"1.3.2": {flagIs(manager, "profiling", "false")},
		"1.3.3": {flagIs(manager, "use-service-account-credentials", "true")},
		"1.3.4": {flagIsSet(manager, "service-account-private-key-file")},
		"1.3.5": {flagIsSet(manager, "root-ca-file")},
		"1.3.6": {flagHasNot(manager, "feature-gates", "RotateKubeletServerCertificate=false")},
		"1.3.7": {flagIs(manager, "bind-address", "127.0.0.1")},
		"1.4.1": {flagIs(scheduler, "profiling", "false")},
		"1.4.2": {flagIs(scheduler, "bind-address", "127.0.0.1")},
	}, nil)
}

// etcdChecks returns the checks 2.
func etcdChecks() []cis {
	return inControlPlane(map[string][]func(facts) string{
		"2.1": {flagIsSet("etcd", "cert-file"), flagIsSet("etcd", "key-file")},
		"2.2": {flagIs("etcd", "client-cert-auth", "true")},
		"2.3": {flagHasNot("etcd", "auto-tls", "true")},
		"2.4": {flagIsSet("etcd", "peer-cert-file"), flagIsSet("etcd", "peer-key-file")},
		"2.5": {flagIs("etcd", "peer-client-cert-auth", "true")},
		"2.6": {flagHasNot("etcd", "peer-auto-tls", "true")},
		"2.7": {flagIs("etcd", "trusted-ca-file", "/etc/kubernetes/pki/etcd/ca.crt")},
	}, nil)
}

func inControlPlane(checks map[string][]func(facts) string, warns map[string]string) []cis {
	var out []cis
	for id, all := range checks {
		out = append(out, cis{id, true, allOf(all), warns[id]})
	}
	return out
}

func allOf(checks []func(facts) string) func(facts) string {
	return func(f facts) string {
		for _, check := range checks {
			if why := check(f); why != "" {
				return why
			}
		}
		return ""
	}
}

// portIsLocal checks that a port is open on the loopback address only.
func portIsLocal(port string) func(facts) string {
	return func(f facts) string {
		open := false
		for _, address := range f.listens {
			host, ok := strings.CutSuffix(address, ":"+port)
			if open = open || ok; ok && host != "127.0.0.1" && host != "[::1]" {
				return address + " is open to others"
			}
		}
		if !open {
			return "no process listens on port " + port
		}
		return ""
	}
}

// nodeChecks returns the checks 4, of every host. kube-proxy has no kubeconfig on the host (4.1.3, 4.1.4).
func nodeChecks() []cis {
	const unit, config, conf = "/etc/systemd/system/kubelet.service", "/var/lib/kubelet/config.yaml",
		"/etc/kubernetes/kubelet.conf"
	positive := func(value any) bool { n, ok := value.(float64); return ok && n > 0 }
	var out []cis
	for id, check := range map[string]func(facts) string{
		"4.1.1":  fileIsClosed(unit, 0o600),
		"4.1.2":  fileIsOwned(unit, "root:root"),
		"4.1.5":  fileIsClosed(conf, 0o600),
		"4.1.6":  fileIsOwned(conf, "root:root"),
		"4.1.7":  fileIsClosed("/etc/kubernetes/pki/ca.crt", 0o644),
		"4.1.8":  fileIsOwned("/etc/kubernetes/pki/ca.crt", "root:root"),
		"4.1.9":  fileIsClosed(config, 0o600),
		"4.1.10": fileIsOwned(config, "root:root"),
		"4.2.1":  kubeletIs(false, "authentication", "anonymous", "enabled"),
		"4.2.2":  kubeletIs("Webhook", "authorization", "mode"),
		"4.2.3":  kubeletIs("/etc/kubernetes/pki/ca.crt", "authentication", "x509", "clientCAFile"),
		// A missing readOnlyPort means 0.
		"4.2.4": kubeletHas("0", func(v any) bool { return v == nil || fmt.Sprint(v) == "0" }, "readOnlyPort"),
		"4.2.5": kubeletHas("not 0", func(v any) bool { return v != nil && v != "0s" && v != 0.0 },
			"streamingConnectionIdleTimeout"),
		"4.2.6":  kubeletIs(true, "makeIPTablesUtilChains"),
		"4.2.7":  flagHasNot("kubelet", "hostname-override", ""),
		"4.2.8":  kubeletHas("more than 0", positive, "eventRecordQPS"),
		"4.2.10": kubeletIs(true, "rotateCertificates"),
		"4.2.11": kubeletIs(true, "serverTLSBootstrap"),
		"4.2.12": kubeletHas("some", func(v any) bool { s, ok := v.([]any); return ok && len(s) > 0 },
			"tlsCipherSuites"),
		"4.2.13": kubeletHas("more than 0", positive, "podPidsLimit"),
		"4.2.14": kubeletIs(true, "seccompDefault"),
		"4.3.1":  portIsLocal("10249"),
	} {
		out = append(out, cis{id: id, fails: check})
	}
	return out
}
