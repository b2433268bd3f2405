package view

import (
	"fmt"
	"io"
	"kubeone/internal/decide/condition"
	"kubeone/internal/etcd"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EtcdFormat is the version of the JSON that the etcd commands print.
const EtcdFormat = 1

// MembersDocument is the JSON that "etcd members" prints.
type MembersDocument struct {
	Format     int            `json:"format"` // EtcdFormat
	Cluster    string         `json:"cluster"`
	EtcdID     string         `json:"etcdID"` // ID of the etcd cluster, hex
	Quorum     bool           `json:"quorum"` // a quorum responded; if not, one member reported the list
	Healthy    bool           `json:"healthy"`
	Consistent string         `json:"consistent,omitempty"` // "same" or "differs"; "" if the keys were not compared
	Members    []SurveyReport `json:"members"`
	Orphans    []DisarmReport `json:"orphanedAlarms,omitempty"` // alarms of removed members
}

// SurveyReport is one etcd member.
type SurveyReport struct {
	ID         string   `json:"id"` // hex
	Name       string   `json:"name,omitempty"`
	Healthy    bool     `json:"healthy"`
	Leader     bool     `json:"leader,omitempty"`
	Learner    bool     `json:"learner,omitempty"`
	Problem    string   `json:"problem,omitempty"`
	Version    string   `json:"version,omitempty"`
	Revision   int64    `json:"revision,omitempty"`
	DBSize     int64    `json:"dbSize,omitempty"` // bytes
	InUse      int64    `json:"inUse,omitempty"`  // bytes
	Quota      int64    `json:"quota,omitempty"`  // bytes
	Alarms     []string `json:"alarms,omitempty"`
	Hash       string   `json:"hash,omitempty"` // hash of all keys at HashedAt, hex
	HashedAt   int64    `json:"hashRevision,omitempty"`
	PeerURLs   []string `json:"peerURLs,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
}

// NewMembersDocument returns the document for a survey. Healthy is true if a quorum responds, all members are healthy
// voters, there is no alarm, and no member holds different keys.
func NewMembersDocument(cluster string, s etcd.Survey) MembersDocument {
	doc := MembersDocument{
		Format: EtcdFormat, Cluster: cluster, EtcdID: etcd.HexID(s.ClusterID), Quorum: s.Agreed,
		Consistent: string(s.Consistent),
		Healthy:    s.Agreed && s.Consistent != etcd.Different && len(s.Orphans) == 0, Members: []SurveyReport{},
	}
	for _, m := range s.Members {
		r := newSurveyReport(m)
		doc.Healthy = doc.Healthy && r.Healthy && len(r.Alarms) == 0
		doc.Members = append(doc.Members, r)
	}
	for _, a := range s.Orphans {
		doc.Orphans = append(doc.Orphans, DisarmReport{Member: etcd.HexID(a.Member), Alarm: a.Name})
	}
	return doc
}

func newSurveyReport(m etcd.Surveyed) SurveyReport {
	r := SurveyReport{
		ID: etcd.HexID(m.ID), Name: m.Name, Healthy: m.Healthy(), Leader: m.Leads(), Learner: m.Learner,
		Alarms:   m.Alarms,
		PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs,
	}
	if m.Problem != nil {
		r.Problem = m.Problem.Error()
	}
	if s := m.Status; s != nil {
		r.Version, r.Revision, r.DBSize, r.InUse, r.Quota = s.Version, s.Revision, s.DBSize, s.InUse, s.Quota
	}
	if m.Hash != nil {
		r.Hash, r.HashedAt = strconv.FormatUint(uint64(m.Hash.Hash), 16), m.Hash.Revision
	}
	return r
}

// memberState returns the state of a member in one word.
func (r SurveyReport) memberState() string {
	switch {
	case r.Learner:
		return "learner"
	case !r.Healthy:
		return "unhealthy"
	case r.Leader:
		return "leader"
	}
	return "voter"
}

// Print writes the document as text.
func (d MembersDocument) Print(w io.Writer) error {
	out := &page{}
	t := &table{head: []string{"MEMBER", "ID", "STATE", "VERSION", "REVISION", "SIZE", "IN USE", "HASH", "ALARMS"}}
	for _, r := range d.Members {
		size, used := "-", "-"
		if r.DBSize > 0 {
			size, used = Megabytes(r.DBSize), Megabytes(r.InUse)
		}
		t.addTexts(orDash(r.Name), r.ID, r.memberState(), orDash(r.Version),
			orDash(strings.TrimPrefix(strconv.FormatInt(r.Revision, 10), "0")), size, used,
			orDash(r.Hash), orDash(strings.Join(r.Alarms, ",")))
	}
	out.addTable(t)
	for _, r := range d.Members {
		if r.Problem != "" {
			out.addSpace()
			out.addParagraph("", orDash(r.Name)+": "+r.Problem, plain)
		}
	}
	for _, a := range d.Orphans {
		out.addSpace()
		out.addParagraph("",
			fmt.Sprintf("alarm %s of removed member %s: clear it with kubeone etcd disarm",
				a.Alarm, a.Member), plain)
	}
	out.addSpace()
	out.addLine(d.summaryLine())
	out.flush(w)
	return nil
}

func (d MembersDocument) summaryLine() string {
	switch {
	case !d.Quorum:
		return "etcd has no quorum; this is the last known state of one member. See kubeone status."
	case d.Consistent == string(etcd.Different):
		return "The members hold different keys: at least one database is damaged. Replace the member whose " +
			"hash differs (kubeone node replace)."
	case !d.Healthy && len(d.Orphans) > 0:
		return "An alarm of a removed member is still active and may block writes."
	case !d.Healthy:
		return "Some members are not healthy; see kubeone plan."
	case d.Consistent == string(etcd.Same):
		return "All members are healthy and hold the same keys."
	}
	return "All members are healthy; their keys could not be compared."
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// SnapshotDocument is the JSON that "etcd snapshot" prints.
type SnapshotDocument struct {
	Format   int           `json:"format"` // EtcdFormat
	Cluster  string        `json:"cluster"`
	File     string        `json:"file"`
	Via      string        `json:"via"` // the host whose member sent the snapshot
	Snapshot snapshot.Info `json:"snapshot"`
}

// Print writes the document as text.
func (d SnapshotDocument) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: revision %d, %d keys, %s, from %s\nsha256 %s\n",
		d.File, d.Snapshot.Revision, d.Snapshot.Keys, Megabytes(d.Snapshot.Size), d.Via, d.Snapshot.SHA256)
	return err
}

// DefragmentDocument is the JSON that "etcd defragment" prints.
type DefragmentDocument struct {
	Format  int                  `json:"format"` // EtcdFormat
	Cluster string               `json:"cluster"`
	Members []DefragmentedReport `json:"members"` // in the order in which they were defragmented
}

// DefragmentedReport contains the database size of one member before and after.
type DefragmentedReport struct {
	ID     string `json:"id"` // hex
	Name   string `json:"name"`
	Before int64  `json:"before"` // bytes on disk
	After  int64  `json:"after"`  // bytes on disk
}

// Add adds a defragmented member.
func (d *DefragmentDocument) Add(m etcd.Defragmented) {
	d.Members = append(d.Members, DefragmentedReport{
		ID:     etcd.HexID(m.Member.ID),
		Name:   m.Member.Name,
		Before: m.Before,
		After:  m.After,
	})
}

// Last returns a line about the member that was added last. There must be one.
func (d *DefragmentDocument) Last() string {
	m := d.Members[len(d.Members)-1]
	return fmt.Sprintf("%s: %s, was %s", m.Name, Megabytes(m.After), Megabytes(m.Before))
}

// Print writes the document as text.
func (d DefragmentDocument) Print(w io.Writer) error {
	var freed int64
	for _, m := range d.Members {
		freed += m.Before - m.After
	}
	who := fmt.Sprintf("%d members", len(d.Members))
	if len(d.Members) == 1 {
		who = "1 member"
	}
	_, err := fmt.Fprintf(w, "Done. %s released %s.\n", who, Megabytes(freed))
	return err
}

// DisarmDocument is the JSON that "etcd disarm" prints.
type DisarmDocument struct {
	Format  int            `json:"format"` // EtcdFormat
	Cluster string         `json:"cluster"`
	Alarms  []DisarmReport `json:"alarms"` // cleared
}

// DisarmReport is one alarm.
type DisarmReport struct {
	Member string `json:"member"` // ID, hex
	Alarm  string `json:"alarm"`  // NOSPACE
}

// NewDisarmDocument returns the document for the cleared alarms.
func NewDisarmDocument(cluster string, done []etcd.Disarmed) DisarmDocument {
	doc := DisarmDocument{Format: EtcdFormat, Cluster: cluster, Alarms: []DisarmReport{}}
	for _, d := range done {
		doc.Alarms = append(doc.Alarms, DisarmReport{Member: etcd.HexID(d.Member), Alarm: d.Alarm})
	}
	return doc
}

// Print writes the document as text.
func (d DisarmDocument) Print(w io.Writer) error {
	if len(d.Alarms) == 0 {
		_, err := fmt.Fprintln(w, "No changes. There is no alarm.")
		return err
	}
	for _, a := range d.Alarms {
		_, _ = fmt.Fprintf(w, "member %s: alarm %s cleared\n", a.Member, a.Alarm)
	}
	return nil
}

// CertificatesFormat is the version of CertificatesDocument.
const CertificatesFormat = 1

// CertificatesDocument is the JSON that "certificates status" prints.
type CertificatesDocument struct {
	Format  int    `json:"format"` // CertificatesFormat
	Cluster string `json:"cluster"`
	// Healthy means that all hosts reported their certificates, and none has expired or expires within 30 days.
	Healthy      bool             `json:"healthy"`
	Certificates []CertificateEnd `json:"certificates"`
	Unknown      []UnknownReport  `json:"unknown,omitempty"` // hosts whose certificates could not be read
}

// CertificateEnd is one certificate.
type CertificateEnd struct {
	Host     string    `json:"host"`
	Name     string    `json:"name"` // apiserver, etcd/ca, admin.conf
	Kind     string    `json:"kind"` // authority, certificate, kubeconfig
	NotAfter time.Time `json:"notAfter"`
	Days     int       `json:"days"` // full days left; negative when expired
	Expired  bool      `json:"expired"`
	Soon     bool      `json:"soon"` // expires within 30 days
	Signer   string    `json:"signer,omitempty"`
}

// UnknownReport is a host whose certificates could not be read, with the reason.
type UnknownReport struct {
	Host    string `json:"host"`
	Problem string `json:"problem"`
}

// NewCertificatesDocument returns the document for the certificates on control-plane hosts. names maps host IDs to
// display names.
func NewCertificatesDocument(want desired.Cluster, world observed.World, names map[string]string,
	now time.Time) CertificatesDocument {
	doc := CertificatesDocument{
		Format: CertificatesFormat, Cluster: want.Name, Healthy: true, Certificates: []CertificateEnd{},
	}
	for _, h := range want.ControlPlane {
		seen, name := world.Hosts[h.ID], names[h.ID]
		switch {
		case seen.Reach != observed.Reached:
			doc.Unknown = append(doc.Unknown, UnknownReport{name, seen.Problem})
		case len(seen.Certificates) == 0:
			doc.Unknown = append(doc.Unknown, UnknownReport{name, "no certificates could be read"})
		}
		for _, c := range seen.Certificates {
			r := CertificateEnd{
				Host: name, Name: c.Name, Kind: certificateKind(c.Name), NotAfter: c.NotAfter, Signer: c.Signer,
				Days: Days(now, c.NotAfter), Expired: c.Expired, Soon: c.Soon,
			}
			doc.Healthy = doc.Healthy && !r.Expired && !r.Soon
			doc.Certificates = append(doc.Certificates, r)
		}
	}
	doc.Healthy = doc.Healthy && len(doc.Unknown) == 0
	return doc
}

func certificateKind(name string) string {
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
		t := &table{head: []string{"HOST", "NAME", "KIND", "EXPIRES", "DAYS LEFT", "SIGNED BY"}}
		for _, r := range d.Certificates {
			t.addTexts(r.Host, r.Name, r.Kind, r.NotAfter.UTC().Format(time.DateOnly), r.daysText(), orDash(r.Signer))
		}
		out.addTable(t)
		out.addSpace()
	}
	for _, u := range d.Unknown {
		out.addParagraph("", u.Host+": not known: "+u.Problem, plain)
	}
	out.addLine(d.summaryLine())
	out.flush(w)
	return nil
}

func (r CertificateEnd) daysText() string {
	if r.Expired {
		return "expired"
	}
	return fmt.Sprint(r.Days)
}

func (d CertificatesDocument) summaryLine() string {
	expired := slices.ContainsFunc(d.Certificates, func(r CertificateEnd) bool { return r.Expired })
	soon := slices.ContainsFunc(d.Certificates, func(r CertificateEnd) bool { return r.Soon })
	switch {
	case expired:
		return "Some certificates have expired. kubeone apply renews all except CAs."
	case soon:
		return "Some certificates expire within 30 days. kubeone certificates renew renews all except CAs and kubelets."
	case len(d.Unknown) > 0:
		return "Some certificates are not known."
	}
	return "No certificate expires within 30 days."
}
