package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kubeone/internal/decide/condition"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// CertificatesFormat is the version of the JSON of "certificates status".
const CertificatesFormat = 1

// CertificatesDocument is the JSON of "certificates status".
type CertificatesDocument struct {
	Format  int    `json:"format"` // CertificatesFormat
	Cluster string `json:"cluster"`
	// Healthy says that none has expired or ends within 30 days, and that each host said what it has.
	Healthy      bool             `json:"healthy"`
	Certificates []CertificateEnd `json:"certificates"`
	Unknown      []UnknownReport  `json:"unknown,omitempty"` // hosts whose certificates are not known
}

// CertificateEnd is one certificate.
type CertificateEnd struct {
	Host     string    `json:"host"`
	Name     string    `json:"name"` // apiserver, etcd/ca, admin.conf
	Kind     string    `json:"kind"` // authority, certificate, kubeconfig
	NotAfter time.Time `json:"notAfter"`
	Days     int       `json:"days"` // full days left; negative when expired
	Expired  bool      `json:"expired"`
	Soon     bool      `json:"soon"` // it ends within 30 days
	Signer   string    `json:"signer,omitempty"`
}

// UnknownReport is a host whose certificates are not known, and why.
type UnknownReport struct {
	Host    string `json:"host"`
	Problem string `json:"problem"`
}

// NewCertificatesDocument reports the certificates of control-plane hosts, by their display names.
func NewCertificatesDocument(want desired.Cluster, is observed.World, names map[string]string,
	now time.Time) CertificatesDocument {
	doc := CertificatesDocument{
		Format: CertificatesFormat, Cluster: want.Name, Healthy: true, Certificates: []CertificateEnd{},
	}
	for _, h := range want.ControlPlane {
		seen, name := is.Hosts[h.ID], names[h.ID]
		switch {
		case seen.Reach != observed.Reached:
			doc.Unknown = append(doc.Unknown, UnknownReport{name, seen.Problem})
		case len(seen.Certificates) == 0:
			doc.Unknown = append(doc.Unknown, UnknownReport{name, "it has no certificates that can be read"})
		}
		for _, c := range seen.Certificates {
			r := CertificateEnd{
				Host: name, Name: c.Name, Kind: kindOf(c.Name), NotAfter: c.NotAfter, Signer: c.Signer,
				Days: Days(now, c.NotAfter), Expired: c.Expired, Soon: c.Soon,
			}
			doc.Healthy = doc.Healthy && !r.Expired && !r.Soon
			doc.Certificates = append(doc.Certificates, r)
		}
	}
	doc.Healthy = doc.Healthy && len(doc.Unknown) == 0
	return doc
}

func kindOf(name string) string {
	switch {
	case condition.IsAuthority(name):
		return "authority"
	case strings.HasSuffix(name, ".conf"):
		return "kubeconfig"
	}
	return "certificate"
}

// Print writes the document as text.
func (d CertificatesDocument) Print(w io.Writer) error {
	out := &page{}
	if len(d.Certificates) > 0 {
		t := &table{head: []string{"HOST", "NAME", "KIND", "ENDS", "DAYS LEFT", "SIGNED BY"}}
		for _, r := range d.Certificates {
			t.addTexts(r.Host, r.Name, r.Kind, r.NotAfter.UTC().Format(time.DateOnly), r.daysText(), orDash(r.Signer))
		}
		out.table(t)
		out.space()
	}
	for _, u := range d.Unknown {
		out.para("", u.Host+": not known: "+u.Problem, plain)
	}
	out.line(d.verdict())
	out.flush(w)
	return nil
}

func (r CertificateEnd) daysText() string {
	if r.Expired {
		return "expired"
	}
	return fmt.Sprint(r.Days)
}

func (d CertificatesDocument) verdict() string {
	expired := slices.ContainsFunc(d.Certificates, func(r CertificateEnd) bool { return r.Expired })
	soon := slices.ContainsFunc(d.Certificates, func(r CertificateEnd) bool { return r.Soon })
	switch {
	case expired:
		return "Some have expired: kubeone apply renews all but those of CAs."
	case soon:
		return "Some end within 30 days: kubeone certificates renew renews all but those of CAs and kubelets."
	case len(d.Unknown) > 0:
		return "Not all certificates are known."
	}
	return "No certificate ends within 30 days."
}
