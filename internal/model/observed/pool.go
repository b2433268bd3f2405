package observed

import "slices"

// Pool is what the API says of Machines, and of the hosts that Machines may have.
type Pool struct {
	// Controllers is Yes while some process that looks after Machines holds their Lease.
	Controllers Tri `json:"controllers,omitempty"`
	// Credentials is No where the hosts of Machines are given others for registries and proxies than the caller has;
	// Unknown where nobody has compared them.
	Credentials Tri                 `json:"credentials,omitempty"`
	Deployments []MachineDeployment `json:"deployments,omitempty"` // by namespace and name, as all of these
	Machines    []Machine           `json:"machines,omitempty"`
	Hosts       []PoolHost          `json:"hosts,omitempty"`
	// Sets is how many MachineSets there are.
	Sets int `json:"sets,omitempty"`
	// Foreign are the names of definitions of these kinds that belong to another program, such as machine-controller.
	Foreign []string `json:"foreign,omitempty"`
	// Problem is why they could not be read, although the API answers; the rest is zero then.
	Problem string `json:"problem,omitempty"`
	// More says that there are more objects of some kind than are listed here.
	More bool `json:"more,omitempty"`
}

// MachineDeployment is a MachineDeployment object.
type MachineDeployment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Kubelet   string `json:"kubelet,omitempty"`  // the version that its Machines are to have, without v
	Replicas  int    `json:"replicas"`           // how many are desired
	Ready     int    `json:"ready"`              // how many are ready Nodes
	Updated   int    `json:"updated"`            // how many are as its template says
	Deleting  bool   `json:"deleting,omitempty"` // somebody has deleted it
}

// Machine is a Machine object.
type Machine struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Owner     string `json:"owner,omitempty"` // "MachineDeployment workers"; a MachineSet where that has none
	Provider  string `json:"provider,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Node      string `json:"node,omitempty"`
	Host      string `json:"host,omitempty"` // the name of the Host that it has
	// WantedKubelet and Kubelet are versions without v.
	WantedKubelet string `json:"wantedKubelet,omitempty"`
	Kubelet       string `json:"kubelet,omitempty"`
	Deleting      bool   `json:"deleting,omitempty"` // somebody has deleted it, and its host is not returned yet
	// Error is what only a person can correct; Waits why it is not ready otherwise.
	Error string `json:"error,omitempty"`
	Waits string `json:"waits,omitempty"`
}

// ID returns the Machine's namespace and name, as its host notes them.
func (m Machine) ID() string { return m.Namespace + "/" + m.Name }

// OfPool reports whether the Machine has, or is to have, a host of the pool, and no machine of a cloud.
func (m Machine) OfPool() bool { return m.Provider == "ssh" }

// PoolHost is a Host object.
type PoolHost struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	State   string `json:"state,omitempty"`
	// Machine is the namespace and name of the Machine that has it, or had it and has not returned it; "" of one that
	// no Machine has.
	Machine string `json:"machine,omitempty"`
	Message string `json:"message,omitempty"` // why it is in that state
}

// Empty reports whether no Machine is there or about to be, and every host is free. What could not be read is not
// empty.
func (p *Pool) Empty() bool {
	return p == nil ||
		p.Problem == "" && len(p.Deployments) == 0 && len(p.Machines) == 0 && p.Sets == 0 && len(p.Claimed()) == 0
}

// Deployed returns the MachineDeployments.
func (p *Pool) Deployed() []MachineDeployment {
	if p == nil {
		return nil
	}
	return p.Deployments
}

// Claimed returns the hosts that Machines have, or have had and not returned.
func (p *Pool) Claimed() []PoolHost {
	if p == nil {
		return nil
	}
	var out []PoolHost
	for _, h := range p.Hosts {
		if h.Machine != "" {
			out = append(out, h)
		}
	}
	return out
}

// HasHost reports whether the pool has a Host of that name, whether a Machine has it or not.
func (p *Pool) HasHost(name string) bool {
	return p != nil && slices.ContainsFunc(p.Hosts, func(h PoolHost) bool { return h.Name == name })
}

// MachineOn returns the namespace and name of the Machine whose host or Node has one of these names or addresses; "" if
// there is none.
func (p *Pool) MachineOn(names ...string) string {
	if p == nil {
		return ""
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		for _, h := range p.Hosts {
			if h.Machine != "" && (h.Name == name || h.Address == name) {
				return h.Machine
			}
		}
		for _, m := range p.Machines {
			if m.Node == name {
				return m.ID()
			}
		}
	}
	return ""
}
