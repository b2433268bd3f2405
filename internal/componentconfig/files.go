package componentconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kubeone/internal/addons/network"
	"kubeone/internal/model/desired"
)

// Text is a file's content, and its name in the stages of a script.
type Text struct{ Name, Content string }

// HostFiles returns the files of a prepared host.
func HostFiles(in Input, a desired.Artifacts) []Text {
	return []Text{
		{"file_modules", "overlay\nbr_netfilter\nnf_conntrack"},
		{"file_sysctl", kernelSettings(in.Want)},
		{"file_containerd_unit", containerdUnit},
		{"file_containerd_config", containerdConfig(in.Want, a)},
		{"file_crictl", "runtime-endpoint: unix:///run/containerd/containerd.sock\n" +
			"image-endpoint: unix:///run/containerd/containerd.sock"},
		{"file_ca_bundle", in.Want.CABundle},
		{"file_proxy", proxyDropIn(in.Want.Proxy)},
		{"file_kubelet_unit", kubeletUnit(in.Want)},
		{"file_kubelet_patch", kubeletPatch(in)},
		{"file_etcd_patch", etcdPatch},
		{"file_cni", in.Network.Config.Content},
		{"file_cni_path", cniPathUnit(in.Network.Config)},
		{"file_cni_service", cniServiceUnit(in.Network.Config)},
	}
}

// kernelSettings returns the content of a file in /etc/sysctl.d.
func kernelSettings(want desired.Cluster) string {
	if want.Network.IsDualStack() {
		return sysctls + "\nnet.ipv6.conf.all.forwarding = 1"
	}
	return sysctls
}

const sysctls = `fs.inotify.max_user_instances = 8192
fs.inotify.max_user_watches = 1048576
kernel.panic = 10
kernel.panic_on_oops = 1
net.bridge.bridge-nf-call-ip6tables = 1
net.bridge.bridge-nf-call-iptables = 1
net.ipv4.ip_forward = 1
vm.overcommit_memory = 1`

// noProxies shields a unit from proxies in systemd's own configuration: an empty value counts as none. Drop-ins and
// environment files of the unit override it.
const noProxies = `Environment=HTTP_PROXY= HTTPS_PROXY= ALL_PROXY= NO_PROXY=
Environment=http_proxy= https_proxy= all_proxy= no_proxy=
`

const containerdUnit = `[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target local-fs.target

[Service]
Environment=PATH=` + BinDir + `:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Environment=SSL_CERT_DIR=/etc/kubeone/ca:/etc/ssl/certs:/etc/pki/tls/certs
` + noProxies + `ExecStart=` + BinDir + `/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=2
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target`

// kubeletUnit starts the kubelet as kubeadm expects it. The variables are those of kubeadm's own drop-in, so that
// /etc/default/kubelet and /etc/sysconfig/kubelet remain the operator's. The unit also sets the address of the DNS
// cache.
func kubeletUnit(want desired.Cluster) string {
	address := ""
	if want.CachesDNS() {
		address = "ExecStartPre=-/bin/sh -c \"exec ip address replace " + desired.NodeLocalDNSAddress +
			"/32 dev lo scope host\"\n"
	}
	return kubeletUnitHead + address + kubeletUnitTail
}

const kubeletUnitHead = `[Unit]
Description=kubelet: the Kubernetes node agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target containerd.service
After=network-online.target containerd.service
ConditionPathExists=/var/lib/kubelet/config.yaml

[Service]
Environment=PATH=` + BinDir + `:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf ` +
	`--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
` + noProxies + `EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
EnvironmentFile=-/etc/sysconfig/kubelet
`

const kubeletUnitTail = `ExecStart=` + BinDir + `/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS ` +
	`$KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
Restart=always
StartLimitInterval=0
RestartSec=2
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target`

// etcdPatch is kubeadm's patch of etcd's manifest: what it mounts exists only together with etcd's data.
const etcdPatch = `spec:
  containers:
  - name: etcd
    volumeMounts:
    - {name: etcd-log, mountPath: /etc/kubeone/etcd-log, readOnly: true}
  volumes:
  - {name: etcd-log, hostPath: {path: /etc/kubeone/etcd-log, type: Directory}}`

// cniPathUnit returns the unit that gives containerd the network plugin's configuration only when the plugin works.
// Until then the Node stays NotReady and gets no pods.
func cniPathUnit(c network.Config) string {
	if c.File == "" {
		return ""
	}
	return fmt.Sprintf(`[Unit]
Description=waits for the network plugin

[Path]
PathExists=%s
Unit=kubeone-cni.service

[Install]
WantedBy=multi-user.target`, c.Ready)
}

// cniServiceUnit returns the unit that moves the file there atomically. containerd reads any .conf, .conflist or .json.
func cniServiceUnit(c network.Config) string {
	if c.File == "" {
		return ""
	}
	const dir = "/etc/cni/net.d"
	return fmt.Sprintf(`[Unit]
Description=gives containerd the network plugin's configuration

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'mkdir -p %[1]s && cp /etc/kubeone/%[2]s %[1]s/.kubeone && mv -f %[1]s/.kubeone %[1]s/%[2]s'`, dir,
		c.File)
}

func containerdConfig(want desired.Cluster, a desired.Artifacts) string {
	sandbox := want.Containerd.SandboxImage
	for _, i := range a.Images {
		if sandbox == "" && strings.Contains(i.Name, "/pause:") {
			sandbox = i.Name
		}
	}
	return fmt.Sprintf(`version = 3
imports = ["/etc/containerd/conf.d/*.toml"]

[plugins."io.containerd.cri.v1.images"]
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %q
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  device_ownership_from_security_context = %t
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "%s/runc"
      SystemdCgroup = true`, sandbox, want.Containerd.DeviceOwnershipFromSecurityContext, BinDir)
}

// unitEscapes quotes a text for double quotes in a systemd unit (systemd.syntax(7), systemd.unit(5)).
var unitEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%") //nolint:gochecknoglobals // a constant

func proxyDropIn(p desired.Proxy) string {
	var b strings.Builder
	b.WriteString("[Service]\n")
	for _, v := range [][2]string{{"HTTP_PROXY", p.HTTP}, {"HTTPS_PROXY", p.HTTPS}, {"NO_PROXY", p.NoProxy}} {
		if v[1] != "" {
			fmt.Fprintf(&b, "Environment=\"%s=%s\"\n", v[0], unitEscapes.Replace(v[1]))
		}
	}
	if p.HasAuth {
		b.WriteString("EnvironmentFile=-" + ProxyFile + "\n") // overrides the lines above
	}
	return b.String()
}

// RegistryFiles returns containerd's hosts.toml files, one for each registry with settings in the manifest.
func RegistryFiles(want desired.Cluster) []Text {
	registries, insecure := maps.Clone(want.Containerd.Registries), ""
	if want.Registry.Overwrite != "" && want.Registry.Insecure {
		insecure, _, _ = strings.Cut(want.Registry.Overwrite, "/")
		if _, ok := registries[insecure]; !ok {
			if registries == nil {
				registries = map[string]desired.Mirrored{}
			}
			registries[insecure] = desired.Mirrored{}
		}
	}
	files := make([]Text, 0, len(registries))
	for _, name := range slices.Sorted(maps.Keys(registries)) {
		dir := name
		if dir == "*" {
			dir = "_default"
		}
		files = append(files, Text{dir, hostsTOML(name, registries[name], name == insecure)})
	}
	return files
}

// hostsTOML returns containerd's configuration of one registry
// (https://github.com/containerd/containerd/blob/main/docs/hosts.md). Lines before the first table are about the
// registry itself, the fallback after all mirrors. http:// with skip_verify makes containerd try an insecure registry
// with TLS and any certificate first, then with plain HTTP.
func hostsTOML(name string, m desired.Mirrored, insecure bool) string {
	var b strings.Builder
	if name != "*" {
		scheme, host := "https://", name
		if insecure {
			scheme = "http://"
		}
		if host == dockerHub {
			host = dockerHubAPI
		}
		fmt.Fprintf(&b, "server = %s\n", tomlText(scheme+host))
	}
	if m.InsecureSkipVerify || insecure {
		b.WriteString("skip_verify = true\n")
	}
	for _, mirror := range m.Mirrors {
		if !strings.Contains(mirror, "://") {
			mirror = "https://" + mirror
		}
		fmt.Fprintf(&b, "\n[host.%s]\n  capabilities = [\"pull\", \"resolve\"]\n", tomlText(mirror))
		if m.InsecureSkipVerify {
			b.WriteString("  skip_verify = true\n")
		}
		if m.OverridePath {
			b.WriteString("  override_path = true\n")
		}
	}
	return b.String()
}
