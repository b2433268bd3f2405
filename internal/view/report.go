package view

import (
	"cmp"
	"slices"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// StatusInput is what a status rests on.
type StatusInput struct {
	Want     desired.Cluster
	World    observed.World
	Decision decide.Decision // of Want and World
	Now      time.Time
}

// Report is the status of a cluster, worked out: what Status writes as text and StatusJSON as JSON.
type Report struct {
	Format  int       `json:"format"` // ReportFormat
	Cluster string    `json:"cluster"`
	Version string    `json:"version"` // the Kubernetes version of the manifest, without v
	Time    time.Time `json:"time"`
	Healthy bool      `json:"healthy"` // every check is ok
	Checks  []Check   `json:"checks"`
	// Route is what apply would do; Also what it could do before the operator has acted.
	Route fsm.Route    `json:"route"`
	Also  []fsm.Route  `json:"also,omitempty"`
	Hosts []HostReport `json:"hosts"` // those of the manifest, in its order, control plane first
	API   APIReport    `json:"api"`
	Etcd  EtcdReport   `json:"etcd"`
	// Pool is nil of a cluster without Machines, and while the API does not answer.
	Pool *PoolReport `json:"pool,omitempty"`
	// Encryption is nil where nobody wants Secrets encrypted in etcd, and they are not.
	Encryption *EncryptionReport `json:"encryption,omitempty"`
	// what differs from the manifest without being unhealthy
	Drift        []Difference          `json:"drift,omitempty"`
	Running      []RunningStep         `json:"running,omitempty"`
	Locks        []LockReport          `json:"locks,omitempty"`
	Problems     []problem.Problem     `json:"problems,omitempty"`
	Warnings     []problem.Problem     `json:"warnings,omitempty"`
	Instructions []problem.Instruction `json:"instructions,omitempty"`
}

// ReportFormat is the version of Report's format.
const ReportFormat = 1

// HostReport is one host's line.
type HostReport struct {
	ID        string              `json:"id"`
	Name      string              `json:"name"` // of its Node
	Address   string              `json:"address"`
	Role      desired.Role        `json:"role"`
	Condition condition.Condition `json:"condition"`
	Reasons   []string            `json:"reasons,omitempty"`  // why the condition is not healthy
	Problems  []problem.Problem   `json:"problems,omitempty"` // the same, as codes
	// Kubernetes is the version of its API server, or of its kubelet on a worker; Kubelet the kubelet's. Without v,
	// empty when not known or not there.
	Kubernetes string `json:"kubernetes,omitempty"`
	Kubelet    string `json:"kubelet,omitempty"`
	Containerd string `json:"containerd,omitempty"`
	// WantedKubelet is the version that the manifest names for this host; empty where it is the cluster's.
	WantedKubelet string       `json:"wantedKubelet,omitempty"`
	OS            string       `json:"os,omitempty"`
	NodeReady     observed.Tri `json:"nodeReady"` // "no" too when there is no Node; "" when not known
	Cordoned      bool         `json:"cordoned,omitempty"`
	APIServer     observed.Tri `json:"apiServer,omitempty"` // its own API server's /readyz; empty on workers
	Etcd          EtcdState    `json:"etcd,omitempty"`      // empty on workers
	// Certificate is the one that expires first; nil when none is known.
	Certificate *CertificateReport `json:"certificate,omitempty"`
}

// CertificateReport is when a certificate expires.
type CertificateReport struct {
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
	Days     int       `json:"days"` // full days left, negative when expired
	Expired  bool      `json:"expired,omitempty"`
}

// APIReport is the Kubernetes API.
type APIReport struct {
	Endpoint string       `json:"endpoint"`
	Reached  observed.Tri `json:"reached"`
	Problem  string       `json:"problem,omitempty"`
	Via      string       `json:"via,omitempty"` // the name of the host through which it answered
	Version  string       `json:"version,omitempty"`
	// PendingCSRs is how many certificate signing requests wait for an approval.
	PendingCSRs int `json:"pendingCSRs,omitempty"`
}

// Difference is something that differs from the manifest.
type Difference struct {
	Host string   `json:"host,omitempty"` // name; empty for the cluster
	What string   `json:"what"`           // docs/json.md has them all
	Of   []string `json:"of,omitempty"`   // which configurations, addons, or objects in the cluster
}

// RunningStep is a step of ours that runs on a host at this moment.
type RunningStep struct {
	Host  string `json:"host"` // name
	Stage string `json:"stage"`
	RunID string `json:"runID,omitempty"`
}

// LockReport is a run that holds the cluster.
type LockReport struct {
	Holder string    `json:"holder"`
	RunID  string    `json:"runID"`
	Since  time.Time `json:"since"`
	Live   bool      `json:"live"`            // its holder was heard of within the last seconds
	Hosts  []string  `json:"hosts,omitempty"` // names of the hosts with its lock
	API    bool      `json:"api,omitempty"`   // it holds the lease in the cluster
}

// ReportOf works a status out.
func ReportOf(st StatusInput) Report {
	d := st.Decision
	r := Report{
		Format: ReportFormat, Cluster: st.Want.Name, Version: st.Want.KubernetesVersion, Time: st.Now.UTC(),
		Route: d.Route, Also: d.Also, Hosts: []HostReport{},
		Problems: d.Problems, Warnings: d.Warnings, Instructions: d.Instructions,
	}
	for _, h := range st.Want.Hosts() {
		r.Hosts = append(r.Hosts, st.host(h))
	}
	r.API, r.Etcd, r.Pool = st.api(), st.etcd(), st.pool()
	r.Encryption = st.encryption()
	r.Drift, r.Running, r.Locks = st.drift(), st.running(), st.locks()
	r.Checks = checks(st, r)
	r.Healthy = !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.OK })
	return r
}

// StatusJSON is a status as docs/json.md describes it.
func StatusJSON(st StatusInput) ([]byte, error) {
	return encode(ReportOf(st), "status of "+st.Want.Name)
}

// name is what people call the host.
func (st StatusInput) name(id string) string {
	h, ok := st.Want.Host(id)
	if !ok {
		return id
	}
	if node := st.Decision.Hosts[h.ID].Node; node != "" {
		return node
	}
	return cmp.Or(h.Hostname, h.ID)
}
