package condition

import (
	"slices"
	"strings"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// What can be written again on a host, as Assessment.Parts names it: these, and the names of static pods.
const (
	PartCertificates = "certificates"        // the control plane's own, renewed for as long as they were valid
	PartKubelet      = "kubelet-credentials" // kubelet.conf and its client certificate
	PartServing      = "kubelet-serving"     // the certificate that the kubelet shows
	PartSettings     = "kubelet-settings"    // the kubelet's configuration, as the manifest has it
	PartEncryption   = "encryption-keys"     // by which Secrets are encrypted, from another control-plane host
)

// staticPods are the manifests that every control-plane host has, in the order in which their components
// need each other.
var staticPods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// regenerableParts names what a member lacks that can be written again from what it still has, in order, and why. A
// control-plane host must have its CAs and its etcd data for that.
func regenerableParts(role desired.Role, is *observed.Host, cx HostContext) (parts []string, why []problem.Problem) {
	controlPlane := role == desired.ControlPlane
	if controlPlane && (is.PKI != observed.Yes || is.EtcdData != observed.Yes ||
		expiredCertificates(is, IsAuthority) != nil) {
		return nil, nil
	}
	add := func(part string, code problem.Code, parameters problem.Parameters) {
		parts, why = append(parts, part), append(why, problem.Problem{Code: code, Parameters: parameters})
	}
	if controlPlane && settingsStuck(is) {
		add(PartSettings, problem.SettingsStuck, nil)
	}
	if e := is.Encryption; controlPlane && e != nil && e.Lost {
		add(PartEncryption, problem.EncryptionKeysMissing, problem.Parameters{"digest": e.Next.Digest})
	}
	if old := expiredCertificates(is, controlPlaneCertificate); controlPlane && old != nil {
		add(PartCertificates, problem.CertificatesExpired, problem.Parameters{"certificates": old})
	}
	switch {
	case is.KubeletConf == observed.No:
		add(PartKubelet, problem.KubeletConfMissing, nil)
	case is.KubeletCert == observed.No:
		add(PartKubelet, problem.KubeletCertificateMissing, nil)
	case expiredCertificates(is, kubeletCertificate) != nil:
		add(PartKubelet, problem.KubeletCertificateExpired, nil)
	}
	if controlPlane {
		for _, name := range missingPods(is, cx) {
			add(name, problem.StaticPodMissing, problem.Parameters{"pod": name})
		}
		if len(parts) == 0 && upgradeStuck(is, cx) {
			add("kube-apiserver", problem.UpgradeStuck, problem.Parameters{"version": cx.Version})
		}
	}
	return parts, why
}

// missingPods names the static pods whose manifest is not there and that do not run. One of another version than the
// wanted one is not written: that would be an upgrade.
func missingPods(is *observed.Host, cx HostContext) []string {
	if is.Kubelet.Version != cx.Version || is.APIServerVersion != "" && is.APIServerVersion != cx.Version {
		return nil
	}
	health := [...]observed.Tri{is.EtcdHealth, is.APIServer, is.ControllerManager, is.Scheduler}
	var missing []string
	for i, name := range staticPods {
		if !slices.Contains(is.Manifests, name) && health[i] != observed.Yes {
			missing = append(missing, name)
		}
	}
	return missing
}

// upgradeStuck reports whether the host's upgrade to the desired version has begun, and no API server answers with
// which it could continue, while all runs that the host's own one needs: what that was given may be wrong, and right by
// now.
func upgradeStuck(is *observed.Host, cx HostContext) bool {
	return is.Upgrading != "" && is.Upgrading == cx.Version && cx.API == observed.No && is.APIServer == observed.No &&
		is.EtcdHealth == observed.Yes && is.Containerd.Active && is.Kubelet.Active
}

// settingsStuck reports whether the host's kubelet does not run since an upgrade or a reconfiguration of the host has
// begun: what that has written may be what the kubelet refuses, and right in the manifest by now.
func settingsStuck(is *observed.Host) bool {
	return is.Upgrading != "" && is.Containerd.Active && !RunsKubelet(is)
}

// RunsKubelet reports whether the host's kubelet is not known to be down.
func RunsKubelet(is *observed.Host) bool { return is.Kubelet.Active && is.Healthz != observed.No }

// expiredCertificates names the host's certificates of a sort that have expired.
func expiredCertificates(is *observed.Host, sort func(name string) bool) []string {
	var out []string
	for _, c := range is.Certificates {
		if c.Expired && sort(c.Name) {
			out = append(out, c.Name)
		}
	}
	return out
}

// ExpiredKubelet names what a host's kubelet shows to the API server, if it has expired.
func ExpiredKubelet(is *observed.Host) []string { return expiredCertificates(is, kubeletCertificate) }

// ExpiredCA names the host's authorities that have expired: what they sign, or have signed, is worth nothing.
func ExpiredCA(is *observed.Host) []string { return expiredCertificates(is, IsAuthority) }

// IsAuthority reports whether a certificate is that of one of the cluster's authorities.
func IsAuthority(name string) bool {
	return slices.Contains([]string{"ca", "etcd/ca", "front-proxy-ca"}, name)
}

// kubeletCertificate reports whether it is how the kubelet shows itself to the API server: with the one that it renews,
// or, as long as kubelet.conf has not been pointed to that, with the one in it.
func kubeletCertificate(name string) bool { return name == "kubelet-client" || name == "kubelet.conf" }

// controlPlaneCertificate reports whether kubeadm renews it. Kubelets see to their own.
func controlPlaneCertificate(name string) bool {
	return !IsAuthority(name) && !strings.HasPrefix(name, "kubelet")
}

// dataLost returns in what way a control-plane host has, by its own word, lost what its etcd member had; nil when it
// has not. A member that still answers lives, whatever its host says.
func dataLost(role desired.Role, is *observed.Host, cx HostContext) []problem.Problem {
	switch {
	case role != desired.ControlPlane || cx.Etcd != observed.Yes || is.EtcdHealth == observed.Yes:
		return nil
	case cx.Member != nil && (cx.Member.Healthy != observed.No || cx.Member.Learner):
		return nil
	case is.EtcdData == observed.No:
		return oneReason(problem.EtcdDataMissing, nil)
	case is.EtcdLost != "":
		return oneReason(problem.EtcdDataUnusable, problem.Parameters{"error": is.EtcdLost})
	}
	return nil
}

// assessRepairable returns the assessment of a member that can be made whole without a person: from what it has, or by
// joining again. It is nil for one of which neither is so.
func assessRepairable(role desired.Role, is *observed.Host, cx HostContext, a Assessment) *Assessment {
	if a.Parts, a.Reasons = regenerableParts(role, is, cx); len(a.Parts) > 0 {
		a.Condition = Regenerable
		return &a
	}
	if why := dataLost(role, is, cx); why != nil && is.KubeletConf == observed.Yes {
		a.Condition, a.Reasons = Rejoinable, why
		return &a
	}
	return nil
}
