package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"kubeone/internal/etcd"
	"kubeone/internal/etcd/snapshot"
)

// EtcdFormat is the version of the JSON of the commands about etcd.
const EtcdFormat = 1

// MembersDocument is the JSON of "etcd members".
type MembersDocument struct {
	Format     int            `json:"format"` // EtcdFormat
	Cluster    string         `json:"cluster"`
	EtcdID     string         `json:"etcdID"` // hex, of the etcd cluster
	Quorum     bool           `json:"quorum"` // a quorum answered; else the list is what one member last knew
	Healthy    bool           `json:"healthy"`
	Consistent string         `json:"consistent,omitempty"` // same, differs; absent: not compared
	Members    []SurveyReport `json:"members"`
	Orphans    []DisarmReport `json:"orphanedAlarms,omitempty"` // of members that are no longer listed
}

// SurveyReport is one member.
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
	Hash       string   `json:"hash,omitempty"` // hex, of the keys at HashRevision
	HashedAt   int64    `json:"hashRevision,omitempty"`
	PeerURLs   []string `json:"peerURLs,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
}

// NewMembersDocument returns what was surveyed. It is healthy when a quorum answers, every member is a healthy voter,
// there is no alarm, and all members hold the same.
func NewMembersDocument(cluster string, s etcd.Survey) MembersDocument {
	doc := MembersDocument{
		Format: EtcdFormat, Cluster: cluster, EtcdID: etcd.HexID(s.ClusterID), Quorum: s.Agreed,
		Consistent: string(s.Consistent),
		Healthy:    s.Agreed && s.Consistent != etcd.Different && len(s.Orphans) == 0, Members: []SurveyReport{},
	}
	for _, m := range s.Members {
		r := surveyReport(m)
		doc.Healthy = doc.Healthy && r.Healthy && len(r.Alarms) == 0
		doc.Members = append(doc.Members, r)
	}
	for _, a := range s.Orphans {
		doc.Orphans = append(doc.Orphans, DisarmReport{Member: etcd.HexID(a.Member), Alarm: a.Name})
	}
	return doc
}

func surveyReport(m etcd.Surveyed) SurveyReport {
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

// state is a member in one word.
func (r SurveyReport) state() string {
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
		t.addTexts(orDash(r.Name), r.ID, r.state(), orDash(r.Version),
			orDash(strings.TrimPrefix(strconv.FormatInt(r.Revision, 10), "0")), size, used,
			orDash(r.Hash), orDash(strings.Join(r.Alarms, ",")))
	}
	out.table(t)
	for _, r := range d.Members {
		if r.Problem != "" {
			out.space()
			out.para("", orDash(r.Name)+": "+r.Problem, plain)
		}
	}
	for _, a := range d.Orphans {
		out.space()
		out.para("", fmt.Sprintf("alarm %s of member %s, which is no longer there: kubeone etcd disarm takes it back",
			a.Alarm, a.Member), plain)
	}
	out.space()
	out.line(d.verdict())
	out.flush(w)
	return nil
}

func (d MembersDocument) verdict() string {
	switch {
	case !d.Quorum:
		return "No quorum answers; this is what one member last knew. See kubeone status."
	case d.Consistent == string(etcd.Different):
		return "The members do not hold the same keys: at least one database is damaged. Replace the member whose " +
			"hash differs (kubeone node replace)."
	case !d.Healthy && len(d.Orphans) > 0:
		return "An alarm of a member that has left is still raised, and may keep etcd from writing."
	case !d.Healthy:
		return "Not every member is healthy; see kubeone plan."
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

// SnapshotDocument is the JSON of "etcd snapshot".
type SnapshotDocument struct {
	Format   int           `json:"format"` // EtcdFormat
	Cluster  string        `json:"cluster"`
	File     string        `json:"file"`
	Via      string        `json:"via"` // the host whose member gave it
	Snapshot snapshot.Info `json:"snapshot"`
}

// Print writes the document as text.
func (d SnapshotDocument) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: revision %d, %d keys, %s, from %s\nsha256 %s\n",
		d.File, d.Snapshot.Revision, d.Snapshot.Keys, Megabytes(d.Snapshot.Size), d.Via, d.Snapshot.SHA256)
	return err
}

// DefragmentDocument is the JSON of "etcd defragment".
type DefragmentDocument struct {
	Format  int                  `json:"format"` // EtcdFormat
	Cluster string               `json:"cluster"`
	Members []DefragmentedReport `json:"members"` // in the order in which they were defragmented
}

// DefragmentedReport is what one member gave back.
type DefragmentedReport struct {
	ID     string `json:"id"` // hex
	Name   string `json:"name"`
	Before int64  `json:"before"` // bytes, allocated
	After  int64  `json:"after"`
}

// Add adds a member that was defragmented.
func (d *DefragmentDocument) Add(m etcd.Defragmented) {
	d.Members = append(d.Members, DefragmentedReport{
		ID:     etcd.HexID(m.Member.ID),
		Name:   m.Member.Name,
		Before: m.Before,
		After:  m.After,
	})
}

// Last returns the latest member in words.
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
	_, err := fmt.Fprintf(w, "Done. %s gave %s back.\n", who, Megabytes(freed))
	return err
}

// DisarmDocument is the JSON of "etcd disarm".
type DisarmDocument struct {
	Format  int            `json:"format"` // EtcdFormat
	Cluster string         `json:"cluster"`
	Alarms  []DisarmReport `json:"alarms"` // taken back
}

// DisarmReport is one alarm.
type DisarmReport struct {
	Member string `json:"member"` // ID, hex
	Alarm  string `json:"alarm"`  // NOSPACE
}

// NewDisarmDocument reports the alarms that were taken back.
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
		_, _ = fmt.Fprintf(w, "member %s: alarm %s taken back\n", a.Member, a.Alarm)
	}
	return nil
}
