package componentconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"kubeone/internal/model/desired"
)

// Digests returns the sha256 of each desired configuration, by host ID and name. Stages record them on the host, and
// drift is measured against them. Versions and images do not count: those are upgrades, not drift.
func Digests(want desired.Cluster, hosts ...desired.Host) map[string]map[string]string {
	out := make(map[string]map[string]string, len(hosts))
	shared, kubelet := commonHostDigests(Input{Want: want}), clusterKubelet(want)
	if note := desired.DNSImageNote(want); note != "" {
		shared[desired.DNSImageDigest] = note // hosts note it with their images, not when they have joined
	}
	if note := desired.AddonImagesNote(want); note != "" {
		shared[desired.AddonImagesDigest] = note // likewise
	}
	if want.WorkloadImages != "" {
		shared[desired.WorkloadImagesDigest] = want.WorkloadImages // likewise
	}
	for _, h := range hosts {
		in := Input{Want: want, Host: h}
		out[h.ID] = maps.Clone(shared)
		maps.Copy(out[h.ID], digestsWith(in, kubelet))
		out[h.ID][desired.FirewallDigest] = firewallDigest(in)
		maps.Copy(out[h.ID], hostAddonDigests(in))
	}
	return out
}

// PreparedDigests returns the digests recorded when a host is prepared.
func PreparedDigests(in Input) map[string]string {
	digests := commonHostDigests(in)
	digests[desired.FirewallDigest] = firewallDigest(in)
	maps.Copy(digests, hostAddonDigests(in))
	return digests
}

// commonHostDigests returns the digests of the host configuration that is the same on every host.
func commonHostDigests(in Input) map[string]string {
	config := containerdConfig(in.Want, desired.Artifacts{})
	for _, f := range RegistryFiles(in.Want) {
		config += f.Name + f.Content
	}
	return map[string]string{
		"containerd": digestOf(config, proxyDropIn(in.Want.Proxy), in.Want.CABundle),
		"kernel":     digestOf(kernelSettings(in.Want)),
	}
}

// NodeDigests returns the digests recorded when a host has joined.
func NodeDigests(in Input) map[string]string { return digestsWith(in, clusterKubelet(in.Want)) }

// clusterKubelet returns the text of the kubelet configuration that all hosts share.
func clusterKubelet(want desired.Cluster) string {
	text, _ := yamlDocuments(kubeletConfiguration(want)) // of strings and numbers only
	return text
}

func digestsWith(in Input, kubelet string) map[string]string {
	in.Want.Network.DNS.Repository = "" // of an image
	digests := map[string]string{"kubelet": digestOf(kubelet, hostKubeletText(in))}
	if h := in.Want.Hardening; h != "" {
		digests[desired.HardeningDigest] = desired.HardeningNote(h)
	}
	if note := in.Want.CloudNote(); note != "" {
		digests[desired.CloudDigest] = note
	}
	if in.Host.Role == desired.ControlPlane {
		unversioned := clusterConfiguration(in.Want)
		delete(unversioned, "kubernetesVersion")
		// The hosts' own names are only in the certificates; another host does not change the configuration.
		unversioned["apiServer"] = componentOf(in.Want, desired.APIServer, apiServerFlags(in.Want))
		network, _ := yamlDocuments(object{"networking": unversioned["networking"]})
		digests[desired.NetworkDigest] = digestOf(network)
		// The endpoint is checked in kubeconfigs and certificates instead.
		delete(unversioned, "controlPlaneEndpoint")
		text, _ := yamlDocuments(unversioned)
		digests[desired.ComponentsDigest] = digestOf(text)
	}
	return digests
}

func digestOf(texts ...string) string {
	s := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(s[:])
}
