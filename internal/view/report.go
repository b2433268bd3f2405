package view

import (
	"cmp"
	"kubeone/internal/decide"
	"kubeone/internal/decide/atrest"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"slices"
	"strings"
	"time"
)

// StatusInput contains the data that NewReport needs.
type StatusInput struct {
	Want     desired.Cluster
	World    observed.World
	Decision decide.Decision // the decision for Want and World
	Now      time.Time
}

// Report is the status of a cluster. Status writes it as text, StatusJSON as JSON.
type Report struct {
	Format  int       `json:"format"` // ReportFormat
	Cluster string    `json:"cluster"`
	Version string    `json:"version"` // the Kubernetes version in the manifest, without v
	Time    time.Time `json:"time"`
	Healthy bool      `json:"healthy"` // every check is ok
	Checks  []Check   `json:"checks"`
	// Route is the route that apply would follow. Also lists routes that it can follow before the operator acts.
	Route fsm.Route    `json:"route"`
	Also  []fsm.Route  `json:"also,omitempty"`
	Hosts []HostReport `json:"hosts"` // hosts in the manifest, in the same order, control plane first
	API   APIReport    `json:"api"`
	Etcd  EtcdReport   `json:"etcd"`
	// Pool is nil if there are no Machines and pool hosts, or if the API does not respond.
	Pool *PoolReport `json:"pool,omitempty"`
	// Encryption is nil if Secrets are not encrypted and the manifest does not enable encryption.
	Encryption *EncryptionReport `json:"encryption,omitempty"`
	// Drift lists differences from the manifest. They do not make the cluster unhealthy.
	Drift        []Difference          `json:"drift,omitempty"`
	Running      []RunningStep         `json:"running,omitempty"`
	Locks        []LockReport          `json:"locks,omitempty"`
	Problems     []problem.Problem     `json:"problems,omitempty"`
	Warnings     []problem.Problem     `json:"warnings,omitempty"`
	Instructions []problem.Instruction `json:"instructions,omitempty"`
}

// ReportFormat is the version of Report.
const ReportFormat = 1

// HostReport is the status of one host.
type HostReport struct {
	ID        string              `json:"id"`
	Name      string              `json:"name"` // name of the Node, or the hostname
	Address   string              `json:"address"`
	Role      desired.Role        `json:"role"`
	Condition condition.Condition `json:"condition"`
	Reasons   []string            `json:"reasons,omitempty"`  // why the condition is not healthy
	Problems  []problem.Problem   `json:"problems,omitempty"` // the reasons, with codes
	// Kubernetes is the version of the API server, or of the kubelet on a worker. Kubelet is the version of the kubelet.
	// Both are without v, and empty if the version is unknown or the component is absent.
	Kubernetes string `json:"kubernetes,omitempty"`
	Kubelet    string `json:"kubelet,omitempty"`
	Containerd string `json:"containerd,omitempty"`
	// WantedKubelet is the version for this host in the manifest; empty means the version of the cluster.
	WantedKubelet string       `json:"wantedKubelet,omitempty"`
	OS            string       `json:"os,omitempty"`
	NodeReady     observed.Tri `json:"nodeReady"` // also "no" without a Node; "" if unknown
	Cordoned      bool         `json:"cordoned,omitempty"`
	APIServer     observed.Tri `json:"apiServer,omitempty"` // result of /readyz on this host; empty on workers
	Etcd          EtcdState    `json:"etcd,omitempty"`      // empty on workers
	// Certificate is the certificate that expires first; nil if none is known.
	Certificate *CertificateReport `json:"certificate,omitempty"`
}

// CertificateReport says when a certificate expires.
type CertificateReport struct {
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
	Days     int       `json:"days"` // full days left; negative if expired
	Expired  bool      `json:"expired,omitempty"`
}

// APIReport is the status of the Kubernetes API.
type APIReport struct {
	Endpoint string       `json:"endpoint"`
	Reached  observed.Tri `json:"reached"`
	Problem  string       `json:"problem,omitempty"`
	Via      string       `json:"via,omitempty"` // the name of the host through which the API was reached
	Version  string       `json:"version,omitempty"`
	// PendingCSRs is the number of CertificateSigningRequests that are not approved yet.
	PendingCSRs int `json:"pendingCSRs,omitempty"`
}

// Difference is something that differs from the manifest.
type Difference struct {
	Host string   `json:"host,omitempty"` // name; empty for the cluster
	What string   `json:"what"`           // kind of difference; docs/json.md lists all kinds
	Of   []string `json:"of,omitempty"`   // names of configurations, addons, hooks, or objects
}

// RunningStep is a step of kubeone that is running on a host.
type RunningStep struct {
	Host  string `json:"host"` // name
	Stage string `json:"stage"`
	RunID string `json:"runID,omitempty"`
}

// LockReport is a run that holds locks.
type LockReport struct {
	Holder string    `json:"holder"`
	RunID  string    `json:"runID"`
	Since  time.Time `json:"since"`
	Live   bool      `json:"live"`            // the holder was active within the last seconds
	Hosts  []string  `json:"hosts,omitempty"` // names of the hosts that the run has locked
	API    bool      `json:"api,omitempty"`   // the run holds the Lease of the cluster
}

// NewReport computes the status of a cluster.
func NewReport(st StatusInput) Report {
	d := st.Decision
	r := Report{
		Format: ReportFormat, Cluster: st.Want.Name, Version: st.Want.KubernetesVersion, Time: st.Now.UTC(),
		Route: d.Route, Also: d.Also, Hosts: []HostReport{},
		Problems: d.Problems, Warnings: d.Warnings, Instructions: d.Instructions,
	}
	for _, h := range st.Want.Hosts() {
		r.Hosts = append(r.Hosts, st.hostReport(h))
	}
	r.API, r.Etcd, r.Pool = st.apiReport(), st.etcdReport(), st.poolReport()
	r.Encryption = st.encryptionReport()
	r.Drift, r.Running, r.Locks = st.driftReport(), st.runningSteps(), st.lockReports()
	r.Checks = statusChecks(st, r)
	r.Healthy = !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.OK })
	return r
}

// StatusJSON encodes the status of a cluster as a Report, described in docs/json.md.
func StatusJSON(st StatusInput) ([]byte, error) {
	return encodeJSON(NewReport(st), "status of "+st.Want.Name)
}

// displayName returns the name for a host in output: the name of its Node, otherwise its hostname or ID.
func (st StatusInput) displayName(id string) string {
	h, ok := st.Want.Host(id)
	if !ok {
		return id
	}
	if node := st.Decision.Hosts[h.ID].Node; node != "" {
		return node
	}
	return cmp.Or(h.Hostname, h.ID)
}

// EncryptionReport describes how Secrets are stored in etcd.
type EncryptionReport struct {
	Wanted bool `json:"wanted,omitempty"` // the manifest enables encryption
	// StoredBy lists the keys that control-plane hosts currently encrypt Secrets with: one, or several during a key
	// change. "identity" means that Secrets are not encrypted.
	StoredBy []string `json:"storedBy"`
	// ReadBy lists the keys that at least one control-plane host can decrypt Secrets with.
	ReadBy []string `json:"readBy"`
	// Phase is the next phase of a pending key change: "learn", "use" or "forget". Without a key change, it is "".
	Phase atrest.Phase `json:"phase,omitempty"`
	// Unknown lists control-plane hosts that did not report their keys.
	Unknown []string `json:"unknown,omitempty"`
	// Lost lists control-plane hosts that have lost their keys.
	Lost []string `json:"lost,omitempty"`
	// Foreign is the file name of an encryption configuration that does not belong to kubeone.
	Foreign string `json:"foreign,omitempty"`
}

// encryptionReport returns nil if Secrets are not encrypted and the manifest does not enable encryption.
func (st StatusInput) encryptionReport() *EncryptionReport {
	r := EncryptionReport{Wanted: st.Want.EncryptSecrets}
	hosts, found := st.encryptionHosts(&r)
	if !found && !r.Wanted || len(hosts)+len(r.Lost) == 0 && r.Foreign == "" {
		return nil
	}
	for _, h := range hosts {
		for _, running := range h.Running {
			r.StoredBy = addNew(r.StoredBy, running[:min(1, len(running))])
			r.ReadBy = addNew(r.ReadBy, running)
		}
	}
	if len(r.Unknown) == 0 && len(r.Lost) == 0 && r.Foreign == "" {
		r.Phase = atrest.Decide(hosts, atrest.Want{Encrypted: r.Wanted}).Phase
	}
	return &r
}

// encryptionHosts returns the control-plane hosts that report how they store Secrets, and adds the other hosts to r.
// found reports whether any host has an encryption configuration.
func (st StatusInput) encryptionHosts(r *EncryptionReport) (hosts []atrest.Host, found bool) {
	for _, h := range st.Want.ControlPlane {
		seen := st.World.Hosts[h.ID]
		e := seen.Encryption
		found = found || e != nil && seen.Reach == observed.Reached
		switch {
		case seen.Reach != observed.Reached || !st.Decision.Hosts[h.ID].Condition.Joined():
			r.Unknown = append(r.Unknown, st.displayName(h.ID))
		case e != nil && e.Foreign != "":
			r.Foreign = e.Foreign
		case e != nil && e.Lost:
			r.Lost = append(r.Lost, st.displayName(h.ID))
		default:
			hosts = append(hosts, atrest.Of(h.ID, e))
		}
	}
	return hosts, found
}

// addNew appends those of the names in more that are not in names yet.
func addNew(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// addEncryption writes how Secrets are stored.
func (v statusView) addEncryption() {
	e := v.Encryption
	if e == nil {
		return
	}
	var parts []string
	color := plain
	switch {
	case e.Foreign != "":
		parts = append(parts, "by a configuration that is not kubeone's, "+e.Foreign)
	case slices.Equal(e.StoredBy, []string{observed.Identity}):
		parts = append(parts, "not encrypted")
	case len(e.StoredBy) > 0:
		parts = append(parts, "encrypted by "+strings.Join(e.StoredBy, ", "))
	}
	if len(e.ReadBy) > len(e.StoredBy) {
		parts = append(parts, "read by "+strings.Join(e.ReadBy, ", "))
	}
	if e.Phase != atrest.Settled {
		parts, color = append(parts, "key change pending, next phase: "+string(e.Phase)), yellow
	}
	if len(e.Lost) > 0 {
		parts, color = append(parts, "keys are missing on "+strings.Join(e.Lost, ", ")), red
	}
	if len(e.Unknown) > 0 {
		parts = append(parts, "not known for "+strings.Join(e.Unknown, ", "))
	}
	v.addFact("Secrets", color, strings.Join(parts, "; "))
}

// EtcdState is the state of an etcd member.
type EtcdState string

// States of etcd members. EtcdLeader and EtcdVoter mean that the member is healthy.
const (
	EtcdLeader    EtcdState = "leader"
	EtcdVoter     EtcdState = "voter"
	EtcdLearner   EtcdState = "learner"
	EtcdUnhealthy EtcdState = "unhealthy"
	EtcdNone      EtcdState = "none"
	EtcdUnknown   EtcdState = "unknown"
)

// EtcdReport contains the etcd members and the state of the quorum. The numbers are 0 if the members are unknown.
type EtcdReport struct {
	Reached  observed.Tri   `json:"reached"`
	Problem  string         `json:"problem,omitempty"`
	Voters   int            `json:"voters"`
	Healthy  int            `json:"healthy"` // voters known to be healthy
	Learners int            `json:"learners,omitempty"`
	Quorum   int            `json:"quorum"`  // number of voters that must agree
	Holds    bool           `json:"holds"`   // enough voters are healthy for a quorum
	MayFail  int            `json:"mayFail"` // number of healthy voters that can fail without loss of quorum
	Members  []MemberReport `json:"members"`
	// Orphans are alarms of removed members. Like other alarms, they make etcd unhealthy.
	Orphans []observed.Alarm `json:"orphanedAlarms,omitempty"`
}

// MemberReport is one etcd member.
type MemberReport struct {
	ID      string    `json:"id"` // hex
	Name    string    `json:"name,omitempty"`
	Host    string    `json:"host,omitempty"` // name of the host; empty if the host is not in the manifest
	State   EtcdState `json:"state"`
	Version string    `json:"version,omitempty"`
	DBSize  int64     `json:"dbSize,omitempty"` // bytes
	Alarms  []string  `json:"alarms,omitempty"`
}

func (st StatusInput) etcdReport() EtcdReport {
	e := st.World.Etcd
	r := EtcdReport{Reached: e.Reached, Problem: e.Problem, Members: []MemberReport{}, Orphans: e.Orphans}
	if e.Reached != observed.Yes {
		return r
	}
	tally := quorum.Count(e.Members)
	r.Voters, r.Healthy, r.Learners = tally.Voters, tally.Alive, tally.Learners
	r.Quorum, r.Holds = quorum.Of(tally.Voters), tally.Holds()
	r.MayFail = max(tally.Alive-r.Quorum, 0)
	for _, m := range e.Members {
		r.Members = append(r.Members, MemberReport{
			ID: m.ID, Name: m.Name, Host: st.memberHost(m), State: memberState(m), Version: m.Version, DBSize: m.DBSize,
			Alarms: m.Alarms,
		})
	}
	return r
}

// memberHost returns the name of the host of a member, or "" if the host is not in the manifest.
func (st StatusInput) memberHost(m observed.Member) string {
	for _, h := range st.Want.ControlPlane {
		if st.Decision.Hosts[h.ID].Etcd == m.ID {
			return st.displayName(h.ID)
		}
	}
	return ""
}

func memberState(m observed.Member) EtcdState {
	switch {
	case m.Learner:
		return EtcdLearner
	case m.Healthy == observed.Unknown:
		return EtcdUnknown
	case m.Healthy == observed.No || len(m.Alarms) > 0:
		return EtcdUnhealthy
	case m.Leader:
		return EtcdLeader
	}
	return EtcdVoter
}

// hostEtcdState returns the state of the etcd member on a host. id is the ID of the member. If the etcd members are
// unknown, the state is what the host itself reported.
func (st StatusInput) hostEtcdState(id string, seen observed.Host) EtcdState {
	i := slices.IndexFunc(st.World.Etcd.Members, func(m observed.Member) bool { return m.ID == id })
	switch {
	case i >= 0:
		return memberState(st.World.Etcd.Members[i])
	case st.World.Etcd.Reached == observed.Yes, seen.EtcdData == observed.No:
		return EtcdNone
	case seen.EtcdHealth == observed.Yes:
		return EtcdVoter
	case seen.EtcdHealth == observed.No:
		return EtcdUnhealthy
	}
	return EtcdUnknown
}
