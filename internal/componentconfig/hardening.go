package componentconfig

import (
	"kubeone/internal/model/desired"
)

// The baseline's kubelet settings, for what the manifest does not set itself.
const (
	// podPids suffices for any pod except a fork bomb, and is a small part of what a host has.
	podPids = 4096
	// streamingIdle is the kubelet's default. It is set because kubeadm would write a zero otherwise.
	streamingIdle = "4h0m0s"
	// eventRecordQPS is the kubelet's default: enough for normal events, and no node can flood the API.
	eventRecordQPS = 50
)

// hardenKubelet adds the baseline's kubelet settings. Existing settings win.
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

// hardenedSettings returns the kubelet settings that depend on the hardening alone, if that was ever set. They are set,
// or reset to the kubelet's defaults.
func hardenedSettings(want desired.Cluster) []string {
	if want.Hardening == "" {
		return nil
	}
	return []string{
		"eventRecordQPS", "makeIPTablesUtilChains", "seccompDefault", "streamingConnectionIdleTimeout", "tlsMinVersion",
	}
}

// FileMode returns the mode of the files of the kubelet and the network plugin that hold no secrets.
func FileMode(want desired.Cluster) string {
	if want.Hardened() {
		return "0600"
	}
	return "0644"
}
