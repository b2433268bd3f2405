package componentconfig

import (
	"kubeone/internal/model/desired"
)

// What the baseline says of the kubelet, for all that the manifest does not say itself.
const (
	// podPids is enough for any pod that is not a fork bomb, and a small part of what a host has.
	podPids = 4096
	// streamingIdle is the kubelet's own, and said, since kubeadm writes a zero where nothing is.
	streamingIdle = "4h0m0s"
	// eventRecordQPS is the kubelet's own: enough for all that happens, and no node can flood the API.
	eventRecordQPS = 50
)

// hardenKubelet adds the baseline's settings of the kubelet to those that are there, which win.
func hardenKubelet(o object, want desired.Cluster) {
	if !want.Hardened() {
		return
	}
	baseline := object{
		"eventRecordQPS":                 eventRecordQPS,
		"makeIPTablesUtilChains":         true,
		"podPidsLimit":                   podPids,
		"seccompDefault":                 true,
		"streamingConnectionIdleTimeout": streamingIdle,
		"tlsCipherSuites":                desired.StrongCiphers(),
		"tlsMinVersion":                  desired.MinTLSVersion,
	}
	for name, value := range baseline {
		if o[name] == nil {
			o[name] = value
		}
	}
}

// hardenedSettings are the settings of the kubelet on which the manifest decides by its hardening alone: where somebody
// has said something of that. They are set, or set back to the kubelet's own.
func hardenedSettings(want desired.Cluster) []string {
	if want.Hardening == "" {
		return nil
	}
	return []string{
		"eventRecordQPS", "makeIPTablesUtilChains", "seccompDefault", "streamingConnectionIdleTimeout", "tlsMinVersion",
	}
}

// FileMode is the mode of those files of the kubelet and of the network plugin that hold nothing secret.
func FileMode(want desired.Cluster) string {
	if want.Hardened() {
		return "0600"
	}
	return "0644"
}
