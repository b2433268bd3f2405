package probe

import (
	"slices"
	"strings"
	"time"

	"kubeone/internal/model/observed"
)

// Answer is one host's answer to the script.
type Answer struct {
	Host        observed.Host // without ID; Reach is Reached
	Credentials Credentials   // empty unless they were asked for and the host has them
	APIPort     int           // the port of its own API server, from the static pod; 6443 where it does not say
	Parts       []Span        // of the script, without host, counted from the first

	digests map[string]credentialDigest // of files with credentials, by path; nil where they were not asked for
}

// Parse reads the script's output; sent and received are when the operator's clock began and ended to wait for it. It
// is pure. Names that it does not know are passed over, and what is missing stays unknown. Errors are ErrGarbled and
// ErrTruncated, and never quote what a host printed after its first line.
func Parse(out []byte, sent, received time.Time) (Answer, error) {
	l, err := readLines(out)
	if err != nil {
		return Answer{}, err
	}
	h := observed.Host{Reach: observed.Reached}
	files, pem, kubeconfigs := l.pathLines("file"), l.contents("pem"), l.pathLines("yaml")
	machine(&h, l, files)
	software(&h, l)
	h.EtcdLost = l.one("etcd-lost")
	ours(&h, l, files)
	presence(&h, l)
	h.CAHash = CAHash(pem[clusterCA])
	h.Authorities = authorities(pem, files[rotationFile])
	h.Certificates = certificatesOf(pem, kubeconfigs, clock(l))
	h.Endpoint = yamlValue(kubeconfigs[kubeletConf], "server")
	h.AdminEndpoint = yamlValue(kubeconfigs[adminConf], "server")
	h.APINames = namesOf(pem[apiServerCert])
	kubeletCert(&h, l, kubeconfigs[kubeletConf])
	if now := clock(l); !now.IsZero() {
		h.ClockSkew = now.Sub(sent.Add(received.Sub(sent) / 2))
	}
	return Answer{Host: h, Credentials: credentials(l, pem), APIPort: apiPort(l), Parts: parts(l),
		digests: credentialDigests(l)}, nil
}

// parseAccess reads the beginning of the script's output, up to accessLine: credentials, and the port of
// the API server.
func parseAccess(head []byte) (Answer, error) {
	return Parse(append(slices.Clone(head), "end\t1\n"...), time.Time{}, time.Time{})
}

// presence fills in which of the files that decide are there. Without root, a file that is not seen may still be there.
func presence(h *observed.Host, l lines) {
	of := map[string]*observed.Tri{
		kubeletConf:                  &h.KubeletConf,
		adminConf:                    &h.AdminConf,
		"/etc/kubernetes/pki/ca.key": &h.PKI,
		"/var/lib/etcd/member":       &h.EtcdData,
	}
	for file, fact := range of {
		switch {
		case l.has("exists", file):
			*fact = observed.Yes
		case l.has("absent", file) && l.one("uid") == "0":
			*fact = observed.No
		}
	}
}

// kubeletCert finds out whether the client certificate is there that kubelet.conf names. Of any other place than the
// usual one nothing is known.
func kubeletCert(h *observed.Host, l lines, conf []string) {
	switch path := yamlValue(conf, "client-certificate"); {
	case path == "" && yamlValue(conf, "client-certificate-data") != "":
		h.KubeletCert = observed.Yes
	case path != kubeletClient:
	case l.has("exists", path):
		h.KubeletCert = observed.Yes
	case l.has("absent", path) && l.one("uid") == "0":
		h.KubeletCert = observed.No
	}
}

// apiPort is the API server's --secure-port.
func apiPort(l lines) int {
	for _, t := range l.pathLines("yaml")["/etc/kubernetes/manifests/kube-apiserver.yaml"] {
		if _, port, ok := strings.Cut(t, "--secure-port="); ok {
			if n := number(strings.Trim(strings.TrimSpace(port), `"'`)); n > 0 && n < 65536 {
				return n
			}
		}
	}
	return 6443
}
