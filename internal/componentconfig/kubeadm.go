package componentconfig

import (
	"fmt"
	"maps"
	"sort"
	"strconv"
	"strings"

	"kubeone/internal/model/desired"

	"sigs.k8s.io/yaml"
)

// object is a YAML object. Its keys are written sorted, so that equal settings give equal text.
type object map[string]any

// KubeadmFiles returns kubeadm's configuration for this host (API kubeadm.k8s.io/v1beta4): join on all hosts; on
// control-plane hosts also the cluster's, and for init the token that precedes it. The host fills in @TOKEN@ from a
// file that only root can read.
func KubeadmFiles(in Input) ([]Text, error) {
	join, err := yamlDocuments(joinConfiguration(in))
	if err != nil {
		return nil, err
	}
	files := []Text{{"file_join", join}}
	if in.Host.Role != desired.ControlPlane {
		return append(files, Text{"file_token", ""}, Text{"file_cluster", ""}), nil
	}
	artifacts, _ := in.Want.ArtifactsFor(in.Host, in.Arch)
	configuration := withImages(clusterConfiguration(in.Want), artifacts)
	objects := []object{initConfiguration(in), configuration, kubeletConfiguration(in.Want)}
	if !in.Want.Network.KubeProxy.Skip {
		objects = append(objects, KubeProxyConfiguration(in.Want))
	}
	token, err := yamlDocuments(bootstrapToken())
	if err != nil {
		return nil, err
	}
	cluster, err := yamlDocuments(objects...)
	return append(files, Text{"file_token", token}, Text{"file_cluster", cluster}), err
}

func yamlDocuments(objects ...object) (string, error) {
	texts := make([]string, 0, len(objects))
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return "", fmt.Errorf("kubeadm configuration: %w", err)
		}
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "---\n"), nil
}

const kubeadmAPI = "kubeadm.k8s.io/v1beta4"

func initConfiguration(in Input) object {
	return object{
		"apiVersion": kubeadmAPI, "kind": "InitConfiguration",
		"localAPIEndpoint": object{"advertiseAddress": in.Host.PrivateAddress, "bindPort": APIPort},
		"nodeRegistration": nodeRegistration(in),
		"patches":          object{"directory": "/etc/kubeone/patches"},
	}
}

// bootstrapToken returns the secret part of the InitConfiguration, its first lines. Without a token kubeadm would
// create one that is valid for a day. This one is never used, and its group has no rights.
func bootstrapToken() object {
	return object{"bootstrapTokens": []object{{
		"token": "@TOKEN@", "ttl": "15m0s", "description": TokenDescription,
		"usages": []string{"signing", "authentication"},
		"groups": []string{"system:bootstrappers:kubeone:unused"},
	}}}
}

// TokenDescription marks the join tokens that kubeone revokes.
const TokenDescription = "kubeone: join token of run kubeadm-init" // #nosec G101 -- a description

func joinConfiguration(in Input) object {
	o := object{
		"apiVersion": kubeadmAPI, "kind": "JoinConfiguration",
		// The file contains the cluster CA: the join verifies the API server, and need not wait until the controller
		// manager has signed the public cluster-info with the token.
		"discovery": object{
			"file":              object{"kubeConfigPath": SecretsDir + "/" + joinFile},
			"tlsBootstrapToken": "@TOKEN@",
		},
		"nodeRegistration": nodeRegistration(in),
		"patches":          object{"directory": "/etc/kubeone/patches"},
	}
	if in.Host.Role == desired.ControlPlane {
		o["controlPlane"] = object{
			"localAPIEndpoint": object{"advertiseAddress": in.Host.PrivateAddress, "bindPort": APIPort},
		}
	}
	return o
}

func nodeRegistration(in Input) object {
	return object{
		"name": in.NodeName, "criSocket": "unix:///run/containerd/containerd.sock", "taints": taintObjects(in.Host),
		"imagePullPolicy": "IfNotPresent", "imagePullSerial": false,
		"kubeletExtraArgs": argList(kubeletArgs(in)),
	}
}

// kubeletArgs returns the kubelet flags. A Machine's Node has its label from the moment the kubelet creates it, so that
// its owner is known even if the join fails later.
func kubeletArgs(in Input) map[string]string {
	flags := map[string]string{"node-ip": strings.Join(in.Want.Network.NodeAddresses(in.Host), ",")}
	if in.Want.ExternalCloud != "" {
		flags["cloud-provider"] = "external" // taints the Node until the cloud's controller manager has seen it
	}
	if in.Host.Machine != "" {
		flags["node-labels"] = desired.OwnerLabel + "=" + in.Host.ID
	}
	return flags
}

func taintObjects(h desired.Host) []object {
	out := make([]object, 0, len(h.Taints))
	for _, t := range h.Taints {
		o := object{"key": t.Key, "effect": t.Effect}
		if t.Value != "" {
			o["value"] = t.Value
		}
		out = append(out, o)
	}
	return out
}

// argList converts flags to v1beta4's list, sorted by name.
func argList(flags map[string]string) []object {
	names := make([]string, 0, len(flags))
	for n := range flags {
		names = append(names, n)
	}
	sort.Strings(names)
	out := make([]object, 0, len(names))
	for _, n := range names {
		out = append(out, object{"name": n, "value": flags[n]})
	}
	return out
}

func clusterConfiguration(want desired.Cluster) object {
	n := want.Network
	etcd := object{"local": object{"dataDir": "/var/lib/etcd", "extraArgs": argList(etcdFlags(want))}}
	o := object{
		"apiVersion": kubeadmAPI, "kind": "ClusterConfiguration",
		"clusterName":          want.Name,
		"kubernetesVersion":    "v" + want.KubernetesVersion,
		"controlPlaneEndpoint": want.Endpoint.String(),
		"networking": object{
			"podSubnet":     strings.Join(n.PodNetworks(), ","),
			"serviceSubnet": strings.Join(n.ServiceNetworks(), ","),
			"dnsDomain":     n.DNSDomain,
		},
		"apiServer":         apiServer(want),
		"controllerManager": componentOf(want, desired.ControllerManager, controllerManagerFlags(want)),
		"scheduler":         componentOf(want, desired.Scheduler, schedulerFlags(want)),
		"etcd":              etcd,
	}
	if want.Registry.Overwrite != "" {
		o["imageRepository"] = want.Registry.Overwrite
		o["dns"] = object{"imageRepository": want.Registry.Overwrite + "/coredns"}
	}
	if r := want.Network.DNS.Repository; r != "" {
		o["dns"] = object{"imageRepository": r}
	}
	if v := want.Certificates.ValidityPeriod; v != "" {
		o["certificateValidityPeriod"] = v
	}
	if v := want.Certificates.CAValidityPeriod; v != "" {
		o["caCertificateValidityPeriod"] = v
	}
	return o
}

// componentOf returns kubeadm's settings of a component: its flags, and its additional mounts.
func componentOf(want desired.Cluster, name string, flags map[string]string) object {
	o := object{"extraArgs": argList(flags)}
	if volumes := extraVolumes(want, name); len(volumes) > 0 {
		o["extraVolumes"] = volumes
	}
	return o
}

func apiServer(want desired.Cluster) object {
	o := componentOf(want, desired.APIServer, apiServerFlags(want))
	o["certSANs"] = want.APINames()
	return o
}

func componentFlags(c desired.Component, base map[string]string) map[string]string {
	if len(c.FeatureGates) > 0 {
		gates := make([]string, 0, len(c.FeatureGates))
		for g, on := range c.FeatureGates {
			gates = append(gates, fmt.Sprintf("%s=%t", g, on))
		}
		sort.Strings(gates)
		base["feature-gates"] = strings.Join(gates, ",")
	}
	for k, v := range c.Flags {
		base[k] = v
	}
	return base
}

func apiServerFlags(want desired.Cluster) map[string]string {
	flags := map[string]string{
		"enable-admission-plugins":      "NodeRestriction",
		"endpoint-reconciler-type":      "lease",
		"kubelet-certificate-authority": "/etc/kubernetes/pki/ca.crt",
		"profiling":                     "false",
		"request-timeout":               "1m0s",
		"service-node-port-range":       want.Network.NodePortRange,
	}
	if s := want.TLSCipherSuites.APIServer; len(s) > 0 {
		flags["tls-cipher-suites"] = strings.Join(s, ",")
	}
	maps.Copy(flags, extraFlags(want, desired.APIServer))
	if plugins := admissionPlugins(want); len(plugins) > 0 {
		flags["enable-admission-plugins"] += "," + strings.Join(plugins, ",")
	}
	return componentFlags(want.Components.APIServer, flags)
}

func controllerManagerFlags(want desired.Cluster) map[string]string {
	flags := map[string]string{"profiling": "false", "terminated-pod-gc-threshold": "1000"}
	if n := want.Network; n.IsDualStack() { // which refuses the flag for a single family
		flags["node-cidr-mask-size-ipv4"] = strconv.Itoa(n.NodeCIDRMaskSize)
		flags["node-cidr-mask-size-ipv6"] = strconv.Itoa(n.NodeCIDRMaskSizeIPv6)
	} else {
		flags["node-cidr-mask-size"] = strconv.Itoa(n.NodeCIDRMaskSize)
	}
	maps.Copy(flags, extraFlags(want, desired.ControllerManager))
	return componentFlags(want.Components.ControllerManager, flags)
}

func schedulerFlags(want desired.Cluster) map[string]string {
	flags := map[string]string{"profiling": "false"}
	maps.Copy(flags, extraFlags(want, desired.Scheduler))
	return componentFlags(want.Components.Scheduler, flags)
}

func etcdFlags(want desired.Cluster) map[string]string {
	flags := map[string]string{}
	e := want.Components.Etcd
	if e.QuotaBackendBytes > 0 {
		flags["quota-backend-bytes"] = strconv.FormatInt(e.QuotaBackendBytes, 10)
	}
	if e.AutoCompactionRetention != "" {
		flags["auto-compaction-retention"] = e.AutoCompactionRetention
	}
	if e.AutoCompactionMode != "" {
		flags["auto-compaction-mode"] = e.AutoCompactionMode
	}
	if s := want.TLSCipherSuites.Etcd; len(s) > 0 {
		flags["cipher-suites"] = strings.Join(s, ",")
	}
	return flags
}

// KubeProxyConfiguration returns the manifest's settings of kube-proxy, in the format kubeproxy.config.k8s.io/v1alpha1.
func KubeProxyConfiguration(want desired.Cluster) map[string]any {
	p := want.Network.KubeProxy
	o := object{
		"apiVersion":  "kubeproxy.config.k8s.io/v1alpha1",
		"kind":        "KubeProxyConfiguration",
		"mode":        p.Mode,
		"clusterCIDR": strings.Join(want.Network.PodNetworks(), ","),
	}
	if c := p.Conntrack; c != nil {
		o["conntrack"] = object{"maxPerCore": c.MaxPerCore, "min": c.Min}
	}
	if v := p.IPVS; v != nil {
		ipvs := object{"strictARP": v.StrictARP}
		for key, value := range map[string]string{
			"scheduler":     v.Scheduler,
			"tcpTimeout":    v.TCPTimeout,
			"tcpFinTimeout": v.TCPFinTimeout,
			"udpTimeout":    v.UDPTimeout,
		} {
			if value != "" {
				ipvs[key] = value
			}
		}
		if len(v.ExcludeCIDRs) > 0 {
			ipvs["excludeCIDRs"] = v.ExcludeCIDRs
		}
		o["ipvs"] = ipvs
	}
	return o
}
