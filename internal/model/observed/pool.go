package observed

import "slices"

// Pool is what the API says of Machines and of the hosts for them.
type Pool struct {
	// Controllers is Yes while a controller of Machines holds its Lease.
	Controllers Tri `json:"controllers,omitempty"`
	// Credentials is No if Machine hosts get other credentials for registries and proxies than the caller's; Unknown if
	// they were not compared.
	Credentials Tri                 `json:"credentials,omitempty"`
	Deployments []MachineDeployment `json:"deployments,omitempty"` // sorted by namespace and name, like all lists here
	Machines    []Machine           `json:"machines,omitempty"`
	Hosts       []PoolHost          `json:"hosts,omitempty"`
	// Sets is the number of MachineSets.
	Sets int `json:"sets,omitempty"`
	// Foreign lists the definitions of these kinds that belong to another program, such as machine-controller.
	Foreign []string `json:"foreign,omitempty"`
	// Problem says why the pool could not be read although the API answers; the rest is zero then.
	Problem string `json:"problem,omitempty"`
	// More says that there are more objects of some kind than are listed here.
	More bool `json:"more,omitempty"`
}

// MachineDeployment is a MachineDeployment object.
type MachineDeployment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Kubelet   string `json:"kubelet,omitempty"`  // desired version of its Machines, without v
	Replicas  int    `json:"replicas"`           // desired number
	Ready     int    `json:"ready"`              // number of ready Nodes
	Updated   int    `json:"updated"`            // number that matches its template
	Deleting  bool   `json:"deleting,omitempty"` // a deletion has begun
}

// Machine is a Machine object.
type Machine struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Owner     string `json:"owner,omitempty"` // "MachineDeployment workers"; a MachineSet if that has no owner
	Provider  string `json:"provider,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Node      string `json:"node,omitempty"`
	Host      string `json:"host,omitempty"` // the name of its Host
	// WantedKubelet and Kubelet are versions without v.
	WantedKubelet string `json:"wantedKubelet,omitempty"`
	Kubelet       string `json:"kubelet,omitempty"`
	Deleting      bool   `json:"deleting,omitempty"` // a deletion has begun, and its host is not returned yet
	// Error is what only an operator can correct; Waits is any other reason why it is not ready.
	Error string `json:"error,omitempty"`
	Waits string `json:"waits,omitempty"`
}

// ID returns the Machine's namespace and name, as in its host's marker.
func (m Machine) ID() string { return m.Namespace + "/" + m.Name }

// OfPool reports whether the Machine uses a host in the pool, not a cloud's machine.
func (m Machine) OfPool() bool { return m.Provider == "ssh" }

// PoolHost is a Host object.
type PoolHost struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	State   string `json:"state,omitempty"`
	// Machine is the namespace and name of the Machine that has the host or has not returned it; "" if none has.
	Machine string `json:"machine,omitempty"`
	Message string `json:"message,omitempty"` // the reason for the state
}

// Empty reports whether no Machine exists or is about to, and every host is free. An unreadable pool is not empty.
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

// Claimed returns the hosts that Machines have, or had and have not returned.
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

// HasHost reports whether the pool has a Host with that name, free or not.
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
