package condition

import (
	"slices"
	"strings"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// What can be regenerated on a host, as in Assessment.Parts: these, and the names of static pods.
const (
	PartCertificates = "certificates"        // the control plane's own, with the validity that they had
	PartKubelet      = "kubelet-credentials" // kubelet.conf and its client certificate
	PartServing      = "kubelet-serving"     // the kubelet's serving certificate
	PartSettings     = "kubelet-settings"    // the kubelet's configuration, as in the manifest
	PartEncryption   = "encryption-keys"     // encrypt Secrets; copied from another control-plane host
)

// staticPods lists the manifests of every control-plane host, in the order in which their components need each other.
var staticPods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// regenerableParts lists what a member lacks and can regenerate from what it still has, in order, and why. A
// control-plane host needs its CAs and its etcd data for that.
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

// missingPods lists the static pods that have no manifest and are not running. On a host of another version none is
// written: that would be an upgrade.
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

// upgradeStuck reports whether the host's upgrade to the desired version has begun, no API server answers for it to
// continue, and everything runs that the host's own API server needs. The upgrade may have written wrong settings that
// the manifest has since corrected.
func upgradeStuck(is *observed.Host, cx HostContext) bool {
	return is.Upgrading != "" && is.Upgrading == cx.Version && cx.API == observed.No && is.APIServer == observed.No &&
		is.EtcdHealth == observed.Yes && is.Containerd.Active && is.Kubelet.Active
}

// settingsStuck reports whether the host's kubelet does not run since an upgrade or reconfiguration began. It may
// refuse the new settings, and the manifest may have corrected them since.
func settingsStuck(is *observed.Host) bool {
	return is.Upgrading != "" && is.Containerd.Active && !RunsKubelet(is)
}

// RunsKubelet reports whether the host's kubelet runs, as far as is known.
func RunsKubelet(is *observed.Host) bool { return is.Kubelet.Active && is.Healthz != observed.No }

// expiredCertificates lists the host's expired certificates of one sort.
func expiredCertificates(is *observed.Host, sort func(name string) bool) []string {
	var out []string
	for _, c := range is.Certificates {
		if c.Expired && sort(c.Name) {
			out = append(out, c.Name)
		}
	}
	return out
}

// ExpiredKubelet returns the kubelet's client certificates, if they have expired.
func ExpiredKubelet(is *observed.Host) []string { return expiredCertificates(is, kubeletCertificate) }

// ExpiredCA lists the host's expired CAs: nothing that they signed is valid.
func ExpiredCA(is *observed.Host) []string { return expiredCertificates(is, IsAuthority) }

// IsAuthority reports whether the certificate is one of the cluster CAs.
func IsAuthority(name string) bool {
	return slices.Contains([]string{"ca", "etcd/ca", "front-proxy-ca"}, name)
}

// kubeletCertificate reports whether the kubelet authenticates to the API server with the certificate: the one that it
// renews, or the one in kubelet.conf until that refers to the former.
func kubeletCertificate(name string) bool { return name == "kubelet-client" || name == "kubelet.conf" }

// controlPlaneCertificate reports whether kubeadm renews the certificate. Kubelets renew their own.
func controlPlaneCertificate(name string) bool {
	return !IsAuthority(name) && !strings.HasPrefix(name, "kubelet")
}

// dataLost returns how a control-plane host, by its own account, has lost its etcd data; nil if it has not. A member
// that still answers is alive, whatever its host says.
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

// assessRepairable returns the assessment of a member that kubeone can repair without an operator, from what it has or
// by joining again. It is nil if neither is possible.
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
