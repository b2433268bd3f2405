package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"kubeone/internal/decide/condition"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/view"
)

// CertificatesFormat is the version of the JSON of "certificates status".
const CertificatesFormat = 1

// CertificatesDocument is the JSON of "certificates status".
type CertificatesDocument struct {
	Format  int    `json:"format"` // CertificatesFormat
	Cluster string `json:"cluster"`
	// Healthy says that none has expired or ends within 30 days, and that each host said what it has.
	Healthy      bool                `json:"healthy"`
	Certificates []CertificateReport `json:"certificates"`
	Unknown      []UnknownReport     `json:"unknown,omitempty"` // hosts whose certificates are not known
}

// CertificateReport is one certificate.
type CertificateReport struct {
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

func certificatesDocument(want desired.Cluster, is observed.World, names map[string]string,
	now time.Time) CertificatesDocument {
	doc := CertificatesDocument{
		Format: CertificatesFormat, Cluster: want.Name, Healthy: true, Certificates: []CertificateReport{},
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
			r := CertificateReport{
				Host: name, Name: c.Name, Kind: kindOf(c.Name), NotAfter: c.NotAfter, Signer: c.Signer,
				Days: view.Days(now, c.NotAfter), Expired: c.Expired, Soon: c.Soon,
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

func (d CertificatesDocument) print(w io.Writer) error {
	if len(d.Certificates) > 0 {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "HOST\tNAME\tKIND\tENDS\tDAYS LEFT\tSIGNED BY")
		for _, r := range d.Certificates {
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Host, r.Name, r.Kind,
				r.NotAfter.UTC().Format(time.DateOnly), r.daysText(), orDash(r.Signer))
		}
		_, _ = fmt.Fprintln(table)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, u := range d.Unknown {
		_, _ = fmt.Fprintf(w, "%s: not known: %s\n", u.Host, u.Problem)
	}
	_, err := fmt.Fprintln(w, d.verdict())
	return err
}

func (r CertificateReport) daysText() string {
	if r.Expired {
		return "expired"
	}
	return fmt.Sprint(r.Days)
}

func (d CertificatesDocument) verdict() string {
	expired := slices.ContainsFunc(d.Certificates, func(r CertificateReport) bool { return r.Expired })
	soon := slices.ContainsFunc(d.Certificates, func(r CertificateReport) bool { return r.Soon })
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
