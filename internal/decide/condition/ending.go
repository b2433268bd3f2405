package condition

import (
	"slices"
	"time"

	"kubeone/internal/model/observed"
)

const (
	// renewBefore is the remaining life below which a certificate is renewed, unless more than a third of its life is
	// left.
	renewBefore = 90 * 24 * time.Hour
	// renewGain is the minimum that a renewal must add to a certificate's life, so that a resumed run does not renew
	// certificates again.
	renewGain = time.Hour
)

// renewableCertificates returns the certificates that "kubeadm certs renew" renews, each with the CA that signs it.
// Kubelets renew their own, and other certificates are not kubeone's.
func renewableCertificates() map[string]string {
	return map[string]string{
		"apiserver": "ca", "apiserver-kubelet-client": "ca", "apiserver-etcd-client": "etcd/ca",
		"front-proxy-client": "front-proxy-ca",
		"etcd/server":        "etcd/ca", "etcd/peer": "etcd/ca", "etcd/healthcheck-client": "etcd/ca",
		"admin.conf": "ca", "super-admin.conf": "ca", "controller-manager.conf": "ca", "scheduler.conf": "ca",
	}
}

// Ending lists the certificates of a control-plane host that have less than 90 days and less than a third of their life
// left, in the host's order. Validity is the life of a new certificate. It cannot be read from an old one: kubeadm's
// certificates begin with their CA.
func Ending(is *observed.Host, validity time.Duration) []string {
	return ofRenewable(is, func(c observed.Certificate) bool {
		life := validity
		if !c.NotBefore.IsZero() {
			life = min(life, c.NotAfter.Sub(c.NotBefore))
		}
		return c.Left > 0 && c.Left < renewBefore && c.Left < life/3 && !isLimitedByCA(is, c)
	})
}

// Renewable lists the certificates of a control-plane host to which a renewal would add more than an hour; with all,
// every one that kubeadm renews.
func Renewable(is *observed.Host, validity time.Duration, all bool) []string {
	return ofRenewable(is, func(c observed.Certificate) bool {
		return all || c.Left < validity-min(renewGain, validity/3) && !isLimitedByCA(is, c)
	})
}

func ofRenewable(is *observed.Host, needs func(observed.Certificate) bool) []string {
	var out []string
	known := renewableCertificates()
	for _, c := range is.Certificates {
		if known[c.Name] != "" && needs(c) {
			out = append(out, c.Name)
		}
	}
	return out
}

// isLimitedByCA reports whether a certificate expires with its CA, so that a renewal is of no use.
func isLimitedByCA(is *observed.Host, c observed.Certificate) bool {
	signs := renewableCertificates()[c.Name]
	i := slices.IndexFunc(is.Certificates, func(ca observed.Certificate) bool { return ca.Name == signs })
	if i < 0 || c.Expired {
		return false
	}
	end := is.Certificates[i].NotAfter
	return !end.IsZero() && !end.After(c.NotAfter)
}
