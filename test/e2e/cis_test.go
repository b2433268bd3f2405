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

func (s *scenario) facts(host *fleet.Host) facts {
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

// closed checks that a file has no permission bits other than most. A missing file fails.
func closed(path string, most uint64) func(facts) string {
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

// owned checks a file's owner and group.
func owned(path, by string) func(facts) string {
	return func(f facts) string {
		if text := f.files[path]; !strings.HasSuffix(text, " "+by) {
			return fmt.Sprintf("%s is %q, want %s", path, text, by)
		}
		return ""
	}
}

// below applies a check to all files below a directory with the suffix; there must be at least one.
func below(dir, suffix string, check func(path string) func(facts) string) func(facts) string {
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

// flag checks a component's flag.
func flag(component, name, want string, holds func(value string) bool) func(facts) string {
	return func(f facts) string {
		value, set := f.args[component][name]
		if f.args[component] == nil || !set || !holds(value) {
			return fmt.Sprintf("%s: --%s is %q (set: %t), want %s", component, name, value, set, want)
		}
		return ""
	}
}

func set(component, name string) func(facts) string {
	return flag(component, name, "anything", func(value string) bool { return value != "" })
}

func is(component, name, want string) func(facts) string {
	return flag(component, name, want, func(value string) bool { return value == want })
}

func least(component, name string, want int) func(facts) string {
	return flag(component, name, strconv.Itoa(want)+" at least", func(value string) bool {
		n, err := strconv.Atoi(value)
		return err == nil && n >= want
	})
}

func has(component, name, item string) func(facts) string {
	return flag(component, name, item+" in it", func(value string) bool {
		return slices.Contains(strings.Split(value, ","), item)
	})
}

// not checks that a flag does not contain the item. The flag may be missing.
func not(component, name, item string) func(facts) string {
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
		add(strconv.Itoa(2*i+1), "", closed(path, 0o600))
		add(strconv.Itoa(2*i+2), "", owned(path, "root:root"))
	}
	add("9", "", below("/etc/cni/net.d", "", func(path string) func(facts) string { return closed(path, 0o600) }))
	add("10", "", below("/etc/cni/net.d", "", func(path string) func(facts) string { return owned(path, "root:root") }))
	add("11", "", closed("/var/lib/etcd", 0o700))
	add("12", "etcd runs as root, as kubeadm has it, and its data are root's alone",
		owned("/var/lib/etcd", "etcd:etcd"))
	for i, name := range []string{"admin", "scheduler", "controller-manager"} {
		path := kubernetes + "/" + name + ".conf"
		add(strconv.Itoa(2*i+13), "", closed(path, 0o600))
		add(strconv.Itoa(2*i+14), "", owned(path, "root:root"))
	}
	pki := kubernetes + "/pki"
	add("19", "", below(pki, "", func(path string) func(facts) string { return owned(path, "root:root") }))
	add("20", "", below(pki, ".crt", func(path string) func(facts) string { return closed(path, 0o644) }))
	add("21", "", below(pki, ".key", func(path string) func(facts) string { return closed(path, 0o600) }))
	return out
}

// apiServerChecks returns the checks 1.2 and 3.2.1.
func apiServerChecks() []cis {
	const api = "kube-apiserver"
	notWanted := "it is the cluster's owner who decides: pods, Services and Secrets of a living cluster may need it"
	return inControlPlane(map[string][]func(facts) string{
		"1.2.1":  {set(api, "authentication-config")},
		"1.2.2":  {not(api, "token-auth-file", "")},
		"1.2.3":  {has(api, "enable-admission-plugins", "DenyServiceExternalIPs")},
		"1.2.4":  {set(api, "kubelet-client-certificate"), set(api, "kubelet-client-key")},
		"1.2.5":  {set(api, "kubelet-certificate-authority")},
		"1.2.6":  {set(api, "authorization-mode"), not(api, "authorization-mode", "AlwaysAllow")},
		"1.2.7":  {has(api, "authorization-mode", "Node")},
		"1.2.8":  {has(api, "authorization-mode", "RBAC")},
		"1.2.9":  {has(api, "enable-admission-plugins", "EventRateLimit")},
		"1.2.10": {not(api, "enable-admission-plugins", "AlwaysAdmit")},
		"1.2.11": {has(api, "enable-admission-plugins", "AlwaysPullImages")},
		"1.2.12": {not(api, "disable-admission-plugins", "ServiceAccount")},
		"1.2.13": {not(api, "disable-admission-plugins", "NamespaceLifecycle")},
		"1.2.14": {has(api, "enable-admission-plugins", "NodeRestriction")},
		"1.2.15": {is(api, "profiling", "false")},
		"1.2.16": {set(api, "audit-log-path")},
		"1.2.17": {least(api, "audit-log-maxage", 30)},
		"1.2.18": {least(api, "audit-log-maxbackup", 10)},
		"1.2.19": {least(api, "audit-log-maxsize", 100)},
		"1.2.20": {set(api, "request-timeout")},
		"1.2.21": {not(api, "service-account-lookup", "false")},
		"1.2.22": {set(api, "service-account-key-file")},
		"1.2.23": {set(api, "etcd-certfile"), set(api, "etcd-keyfile")},
		"1.2.24": {set(api, "tls-cert-file"), set(api, "tls-private-key-file")},
		"1.2.25": {set(api, "client-ca-file")},
		"1.2.26": {set(api, "etcd-cafile")},
		"1.2.27": {set(api, "encryption-provider-config")},
		"1.2.29": {set(api, "tls-cipher-suites"), is(api, "tls-min-version", "VersionTLS12")},
		"1.2.30": {is(api, "service-account-extend-token-expiration", "false")},
		"3.2.1":  {set(api, "audit-policy-file")},
	}, map[string]string{"1.2.3": notWanted, "1.2.9": notWanted, "1.2.11": notWanted, "1.2.27": notWanted})
}

// controllerChecks returns the checks 1.3 and 1.4.
func controllerChecks() []cis {
	const manager, scheduler = "kube-controller", "kube-scheduler" // names in the kernel
	return inControlPlane(map[string][]func(facts) string{
		"1.3.1": {set(manager, "terminated-pod-gc-threshold")},
		"1.3.2": {is(manager, "profiling", "false")},
		"1.3.3": {is(manager, "use-service-account-credentials", "true")},
		"1.3.4": {set(manager, "service-account-private-key-file")},
		"1.3.5": {set(manager, "root-ca-file")},
		"1.3.6": {not(manager, "feature-gates", "RotateKubeletServerCertificate=false")},
		"1.3.7": {is(manager, "bind-address", "127.0.0.1")},
		"1.4.1": {is(scheduler, "profiling", "false")},
		"1.4.2": {is(scheduler, "bind-address", "127.0.0.1")},
	}, nil)
}

// etcdChecks returns the checks 2.
func etcdChecks() []cis {
	return inControlPlane(map[string][]func(facts) string{
		"2.1": {set("etcd", "cert-file"), set("etcd", "key-file")},
		"2.2": {is("etcd", "client-cert-auth", "true")},
		"2.3": {not("etcd", "auto-tls", "true")},
		"2.4": {set("etcd", "peer-cert-file"), set("etcd", "peer-key-file")},
		"2.5": {is("etcd", "peer-client-cert-auth", "true")},
		"2.6": {not("etcd", "peer-auto-tls", "true")},
		"2.7": {is("etcd", "trusted-ca-file", "/etc/kubernetes/pki/etcd/ca.crt")},
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

// local checks that a port is open on the loopback address only.
func local(port string) func(facts) string {
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
		"4.1.1":  closed(unit, 0o600),
		"4.1.2":  owned(unit, "root:root"),
		"4.1.5":  closed(conf, 0o600),
		"4.1.6":  owned(conf, "root:root"),
		"4.1.7":  closed("/etc/kubernetes/pki/ca.crt", 0o644),
		"4.1.8":  owned("/etc/kubernetes/pki/ca.crt", "root:root"),
		"4.1.9":  closed(config, 0o600),
		"4.1.10": owned(config, "root:root"),
		"4.2.1":  kubeletIs(false, "authentication", "anonymous", "enabled"),
		"4.2.2":  kubeletIs("Webhook", "authorization", "mode"),
		"4.2.3":  kubeletIs("/etc/kubernetes/pki/ca.crt", "authentication", "x509", "clientCAFile"),
		// A missing readOnlyPort means 0.
		"4.2.4": kubeletHas("0", func(v any) bool { return v == nil || fmt.Sprint(v) == "0" }, "readOnlyPort"),
		"4.2.5": kubeletHas("not 0", func(v any) bool { return v != nil && v != "0s" && v != 0.0 },
			"streamingConnectionIdleTimeout"),
		"4.2.6":  kubeletIs(true, "makeIPTablesUtilChains"),
		"4.2.7":  not("kubelet", "hostname-override", ""),
		"4.2.8":  kubeletHas("more than 0", positive, "eventRecordQPS"),
		"4.2.10": kubeletIs(true, "rotateCertificates"),
		"4.2.11": kubeletIs(true, "serverTLSBootstrap"),
		"4.2.12": kubeletHas("some", func(v any) bool { s, ok := v.([]any); return ok && len(s) > 0 },
			"tlsCipherSuites"),
		"4.2.13": kubeletHas("more than 0", positive, "podPidsLimit"),
		"4.2.14": kubeletIs(true, "seccompDefault"),
		"4.3.1":  local("10249"),
	} {
		out = append(out, cis{id: id, fails: check})
	}
	return out
}
