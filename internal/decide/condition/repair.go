package condition

import (
	"slices"
	"strings"

	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
)

// What can be written again on a host, as Assessment.Parts names it: these two, and the names of static pods.
const (
	PartCertificates = "certificates"        // the control plane's own, renewed for as long as they were valid
	PartKubelet      = "kubelet-credentials" // kubelet.conf and its client certificate
)

// staticPods are the manifests that every control-plane host has, in the order in which their components need each other.
func staticPods() [4]string {
	return [...]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
}

// regenerable names what a member lacks that can be written again from what it still has, in order, and why. A
// control-plane host must have its CAs and its etcd data for that.
func regenerable(role desired.Role, is *observed.Host, cx HostContext) (parts, reasons []string) {
	if role == desired.ControlPlane && (is.PKI != observed.Yes || is.EtcdData != observed.Yes || expired(is, authority) != nil) {
		return nil, nil
	}
	if role == desired.ControlPlane {
		if old := expired(is, controlPlaneCertificate); old != nil {
			parts, reasons = append(parts, PartCertificates), append(reasons, "expired: "+problem.List(old))
		}
	}
	switch old := expired(is, kubeletCertificate); {
	case is.KubeletConf == observed.No:
		parts, reasons = append(parts, PartKubelet), append(reasons, "its kubelet.conf is gone")
	case is.KubeletCert == observed.No:
		parts, reasons = append(parts, PartKubelet), append(reasons, "the kubelet has no client certificate")
	case old != nil:
		parts, reasons = append(parts, PartKubelet), append(reasons, "the kubelet's client certificate has expired")
	}
	if role == desired.ControlPlane {
		for _, name := range missingPods(is, cx) {
			parts, reasons = append(parts, name), append(reasons, name+"'s static-pod manifest is gone")
		}
	}
	return parts, reasons
}

// missingPods names the static pods whose manifest is not there and that do not run. One of another version than the wanted
// one is not written: that would be an upgrade.
func missingPods(is *observed.Host, cx HostContext) []string {
	if is.Kubelet.Version != cx.Version || is.APIServerVersion != "" && is.APIServerVersion != cx.Version {
		return nil
	}
	health := [...]observed.Tri{is.EtcdHealth, is.APIServer, is.ControllerManager, is.Scheduler}
	var missing []string
	for i, name := range staticPods() {
		if !slices.Contains(is.Manifests, name) && health[i] != observed.Yes {
			missing = append(missing, name)
		}
	}
	return missing
}

// expired names the host's certificates of a sort that have expired.
func expired(is *observed.Host, sort func(name string) bool) []string {
	var out []string
	for _, c := range is.Certificates {
		if c.Expired && sort(c.Name) {
			out = append(out, c.Name)
		}
	}
	return out
}

func authority(name string) bool {
	return slices.Contains([]string{"ca", "etcd/ca", "front-proxy-ca"}, name)
}

// kubeletCertificate reports whether it is how the kubelet shows itself to the API server: with the one that it renews, or, as long
// as kubelet.conf has not been pointed to that, with the one in it.
func kubeletCertificate(name string) bool { return name == "kubelet-client" || name == "kubelet.conf" }

// controlPlaneCertificate reports whether kubeadm renews it. Kubelets see to their own.
func controlPlaneCertificate(name string) bool {
	return !authority(name) && !strings.HasPrefix(name, "kubelet")
}

// dataLost says in what way a control-plane host has, by its own word, lost what its etcd member had; empty when it has
// not. A member that still answers lives, whatever its host says.
func dataLost(role desired.Role, is *observed.Host, cx HostContext) string {
	switch {
	case role != desired.ControlPlane || cx.Etcd != observed.Yes || is.EtcdHealth == observed.Yes:
		return ""
	case cx.Member != nil && (cx.Member.Healthy != observed.No || cx.Member.Learner):
		return ""
	case is.EtcdData == observed.No:
		return "its etcd data is gone"
	case is.EtcdLost != "":
		return "its etcd cannot use its data (" + is.EtcdLost + ")"
	}
	return ""
}

// repairable is the assessment of a member that can be made whole without a person: from what it has, or by joining again. It
// is nil for one of which neither is so.
func repairable(role desired.Role, is *observed.Host, cx HostContext, a Assessment) *Assessment {
	if a.Parts, a.Reasons = regenerable(role, is, cx); len(a.Parts) > 0 {
		a.Condition = Rewritable
		return &a
	}
	if why := dataLost(role, is, cx); why != "" && is.KubeletConf == observed.Yes {
		a.Condition, a.Reasons = Rejoinable, []string{why}
		return &a
	}
	return nil
}
