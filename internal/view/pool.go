package view

import "io"

// PoolFormat is the version of PoolDocument's format.
const PoolFormat = 1

// PoolDocument is the JSON of "host list".
type PoolDocument struct {
	Format int        `json:"format"` // PoolFormat
	Hosts  []PoolHost `json:"hosts"`
}

// PoolHost is one host of the pool.
type PoolHost struct {
	Name    string `json:"name"`
	Address string `json:"address"` // USER@ADDRESS:PORT
	State   string `json:"state"`
	Domain  string `json:"failureDomain,omitempty"`
	Machine string `json:"machine,omitempty"` // NAMESPACE/NAME
	Message string `json:"message,omitempty"`
}

// Pool writes the hosts of the pool, a line each, and what is to be said of one below it.
func Pool(w io.Writer, s Style, hosts []PoolHost) {
	out := &page{style: s}
	if len(hosts) == 0 {
		out.line("The pool has no hosts: kubeone host add adds them.")
		out.flush(w)
		return
	}
	t := &table{head: []string{"HOST", "ADDRESS", "STATE", "DOMAIN", "MACHINE"}}
	for _, h := range hosts {
		t.add(cell{h.Name, plain}, cell{h.Address, plain}, cell{h.State, plain}, cell{h.Domain, plain},
			cell{h.Machine, plain})
	}
	for i, lines := range t.lines(s) {
		for _, line := range lines {
			out.line(line)
		}
		if i > 0 && hosts[i-1].Message != "" {
			out.para("    ", hosts[i-1].Message, dim)
		}
	}
	out.flush(w)
}

// PoolCandidate is a machine that is to be a host of the pool.
type PoolCandidate struct {
	Name, Address, System string
	Private               string   // the address of its Node; "" is Address
	Keys                  []string // fingerprints that nobody has approved yet, of bastions first
	Known                 bool     // it is a host of the pool already
}

// PoolCandidates writes what is to be added, and with which key the cluster will log in.
func PoolCandidates(w io.Writer, s Style, candidates []PoolCandidate, key string) {
	out := &page{style: s}
	t := &table{head: []string{"HOST", "ADDRESS", "SYSTEM", "HOST KEY"}}
	for _, c := range candidates {
		keys := "known"
		for i, k := range c.Keys {
			if i == 0 {
				keys = k + " (new)"
			} else {
				keys += ", " + k + " (new)"
			}
		}
		if c.Known {
			keys += "; it is in the pool already"
		}
		at := c.Address
		if c.Private != "" {
			at += ", its Node " + c.Private
		}
		t.add(cell{c.Name, plain}, cell{at, plain}, cell{c.System, plain}, cell{keys, plain})
	}
	for _, lines := range t.lines(s) {
		for _, line := range lines {
			out.line(line)
		}
	}
	out.line("")
	out.para("", "From then on the cluster logs in to them with its own key, "+key+", and is root there.", plain)
	out.flush(w)
}
