// Package problem has the values of what is wrong with a cluster, and what helps.
package problem

// Class is the sort of a problem; each has its own exit status.
type Class string

// The classes of problems.
const (
	ClassConfig     Class = "config"     // the manifest, or what it says about these hosts
	ClassSSH        Class = "ssh"        // login, host key or sudo
	ClassConnection Class = "connection" // no answer
	ClassEtcd       Class = "etcd"
	ClassKube       Class = "kube"    // the Kubernetes API or what runs on it
	ClassRuntime    Class = "runtime" // a host that is not fit
)

// Problem is one thing that is wrong.
type Problem struct {
	Class Class  `json:"class"`
	Host  string `json:"host,omitempty"` // host ID; empty for the cluster
	What  string `json:"what"`           // what is wrong, with the values found and wanted
	Do    string `json:"do"`             // what helps
}

// Instruction is something that a person must do. Instructions are in the order in which it is safe to follow them.
type Instruction struct {
	Host   string   `json:"host,omitempty"` // host ID; empty for the cluster
	Reason string   `json:"reason"`
	Steps  []string `json:"steps"` // in order, without numbers
}
