package view

import (
	"fmt"
	"time"

	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// now is the time of every status in the tests.
func now() time.Time { return time.Date(2026, 8, 10, 3, 0, 0, 0, time.UTC) }

// healthy is a cluster of three control-plane hosts and a worker without problems.
func healthy() StatusInput {
	st := StatusInput{
		Want: desired.Cluster{
			Name: "prod", KubernetesVersion: "1.36.3", Endpoint: desired.Endpoint{Host: "api.prod.example", Port: 6443},
		},
		World:    observed.World{Hosts: map[string]observed.Host{}},
		Decision: decide.Decision{Route: fsm.Nothing, Hosts: map[string]condition.Assessment{}},
		Now:      now(),
	}
	st.World.API = observed.API{Reached: observed.Yes, Via: "203.0.113.11", Version: "1.36.3"}
	st.World.Etcd.Reached = observed.Yes
	for i := 1; i <= 3; i++ {
		st.addHost(fmt.Sprintf("cp-%d", i), fmt.Sprintf("203.0.113.1%d", i), desired.ControlPlane)
	}
	st.addHost("worker-1.a-rather-long-name.example", "203.0.113.21", desired.Worker)
	st.World.Etcd.Members[0].Leader = true
	return st
}

func (st *StatusInput) addHost(name, id string, role desired.Role) {
	h := desired.Host{ID: id, Role: role, PublicAddress: id, PrivateAddress: "10.0.0." + id[len(id)-2:]}
	unit := observed.Unit{Installed: true, Enabled: true, Active: true, State: "active/running", Version: "1.36.3"}
	seen := observed.Host{
		ID: id, Reach: observed.Reached, Hostname: name, OS: observed.OS{Name: "Ubuntu 24.04.3 LTS"}, Kubelet: unit,
	}
	unit.Version = "2.3.5"
	seen.Containerd = unit
	seen.Certificates = []observed.Certificate{
		{Name: "ca", NotAfter: now().AddDate(9, 0, 0)},
		{Name: "kubelet-client", NotAfter: now().AddDate(0, 0, 300).Add(time.Hour)},
	}
	found := condition.Assessment{Condition: condition.Healthy, Member: observed.Yes, Node: name}
	if role == desired.ControlPlane {
		st.Want.ControlPlane = append(st.Want.ControlPlane, h)
		seen.APIServer, seen.APIServerVersion, seen.EtcdHealth = observed.Yes, "1.36.3", observed.Yes
		seen.Certificates = append(seen.Certificates,
			observed.Certificate{Name: "apiserver", NotAfter: now().AddDate(0, 0, 200).Add(time.Hour)})
		found.Etcd = fmt.Sprintf("%016x", len(st.Want.ControlPlane))
		st.World.Etcd.Members = append(st.World.Etcd.Members, observed.Member{
			ID: found.Etcd, Name: name, Healthy: observed.Yes, Version: "3.6.8", DBSize: 20 << 20,
		})
	} else {
		st.Want.Workers = append(st.Want.Workers, h)
	}
	st.World.Hosts[id], st.Decision.Hosts[id] = seen, found
	st.World.API.Nodes = append(st.World.API.Nodes,
		observed.Node{Name: name, Ready: observed.Yes, KubeletVersion: "1.36.3"})
	apps := []string{kubeProxy}
	if len(st.World.API.Nodes) == 1 {
		apps = append(apps, "kube-dns")
	}
	for _, app := range apps {
		st.World.API.Pods = append(st.World.API.Pods, observed.Pod{
			Namespace: "kube-system", Name: app + "-" + name, Node: name, App: app, Ready: observed.Yes,
		})
	}
}

const kubeProxy = "kube-proxy"

const dialTimeout = "dial tcp 203.0.113.13:22: i/o timeout"

// timedOut is the problem that a host does not answer.
func timedOut(id string) problem.Problem {
	return problem.Problem{
		Code:       problem.HostUnreachable,
		Host:       id,
		Parameters: problem.Parameters{"error": dialTimeout},
	}
}

// paused is a cluster with one unreachable control-plane host.
func paused() StatusInput {
	st := healthy()
	id := "203.0.113.13"
	st.World.Hosts[id] = observed.Host{ID: id, Reach: observed.Unreachable, Problem: dialTimeout, Class: "unreachable"}
	st.World.API.Nodes[2].Ready = observed.Unknown
	st.World.Etcd.Members[2].Healthy = observed.No
	st.Decision.Hosts[id] = condition.Assessment{
		Condition: condition.Unreachable, Reasons: []problem.Problem{timedOut(id)}, Member: observed.Yes, Node: "cp-3",
		Etcd: "0000000000000003",
	}
	st.Decision.Route = fsm.Instruct
	st.Decision.Instructions = []problem.Instruction{{
		Host: id, Problems: []problem.Problem{timedOut(id)},
		Steps: []problem.Step{
			{Code: problem.InspectConnection, Parameters: problem.Parameters{"name": "cp-3", "address": id}},
		},
	}}
	return st
}

// lost is a cluster that has lost two of three control-plane hosts.
func lost() StatusInput {
	st := paused()
	id := "203.0.113.12"
	st.World.Hosts[id] = observed.Host{
		ID:      id,
		Reach:   observed.Denied,
		Problem: "permission denied (publickey)",
		Class:   "auth",
	}
	st.World.API = observed.API{Reached: observed.No, Problem: "https://203.0.113.11:6443/readyz: etcd failed"}
	st.World.Etcd.Members[1].Healthy, st.World.Etcd.Members[0].Leader = observed.No, false
	first := st.World.Hosts["203.0.113.11"]
	first.APIServer = observed.No
	st.World.Hosts["203.0.113.11"] = first
	st.Decision.Hosts["203.0.113.11"] = condition.Assessment{
		Condition: condition.Broken, Reasons: []problem.Problem{{
			Code: problem.ComponentUnhealthy, Host: "203.0.113.11",
			Parameters: problem.Parameters{"component": "API server"},
		}}, Member: observed.Yes, Node: "cp-1", Etcd: "0000000000000001",
	}
	st.Decision.Hosts[id] = condition.Assessment{
		Condition: condition.Unreachable, Reasons: []problem.Problem{{
			Code: problem.HostLoginRefused, Host: id,
			Parameters: problem.Parameters{"error": "permission denied (publickey)"},
		}}, Member: observed.Yes, Node: "cp-2", Etcd: "0000000000000002",
	}
	st.Decision.Route = fsm.DisasterRecovery
	st.Decision.Instructions = []problem.Instruction{{
		Problems: []problem.Problem{
			{Code: problem.EtcdQuorumLost, Parameters: problem.Parameters{"healthy": 1, "voters": 3, "quorum": 2}},
		},
		Steps: []problem.Step{
			{Code: problem.BringBackHosts,
				Parameters: problem.Parameters{"count": 1, "hosts": []string{"cp-2", "cp-3"}}},
			{Code: problem.KeepEtcdData, Parameters: problem.Parameters{"hosts": []string{"cp-1"}}},
		},
	}}
	return st
}

// bare is a set of empty hosts.
func bare() StatusInput {
	st := healthy()
	for id, h := range st.World.Hosts {
		st.World.Hosts[id] = observed.Host{ID: id, Reach: observed.Reached, Hostname: h.Hostname, EtcdData: observed.No}
		st.Decision.Hosts[id] = condition.Assessment{
			Condition: condition.Empty,
			Reasons:   []problem.Problem{{Code: problem.HostEmpty, Host: id}},
			Member:    observed.No,
			Node:      h.Hostname,
		}
	}
	st.World.API, st.World.Etcd = observed.API{}, observed.Etcd{}
	st.Decision.Route, st.Decision.Record, st.Decision.Addons = fsm.Install, true, []string{"flannel"}
	return st
}

// busy is a healthy cluster with every possible difference from the manifest and an active run.
func busy() StatusInput {
	st := healthy()
	st.Decision.Route = fsm.Reconfigure
	st.Decision.Drift = map[string][]string{"203.0.113.11": {"containerd", "kubelet"}}
	st.Decision.Upgrades = []string{"203.0.113.21"}
	st.Decision.Metadata = []string{"203.0.113.12"}
	st.Decision.Addons, st.Decision.Record = []string{"flannel", "metrics-server"}, true
	st.Decision.Warnings = []problem.Problem{
		{Code: problem.ClockAhead, Host: "203.0.113.12", Parameters: problem.Parameters{"skew": "31s", "limit": "30s"}},
		{Code: problem.HostOutsideLimit, Host: "203.0.113.21"},
	}
	lock := observed.Lock{
		Holder: "ada@laptop",
		RunID:  "20260810-025648-7f3a",
		Since:  now().Add(-192 * time.Second),
		Live:   true,
	}
	st.World.API.Lease, st.World.API.PendingCSRs = &lock, 1
	st.World.API.Nodes[1].Unschedulable = true
	st.World.API.Nodes[3].KubeletVersion = "1.35.4"
	for _, id := range []string{"203.0.113.11", "203.0.113.12"} {
		h := st.World.Hosts[id]
		h.Lock = &lock
		st.World.Hosts[id] = h
	}
	h := st.World.Hosts["203.0.113.12"]
	h.Step = &observed.Step{Unit: "kubeone-step", RunID: lock.RunID, Stage: "join-etcd"}
	h.Certificates[1].NotAfter = now().AddDate(0, 0, 12)
	st.World.Hosts["203.0.113.12"] = h
	h = st.World.Hosts["203.0.113.21"]
	h.Kubelet.Version = "1.35.4"
	st.World.Hosts["203.0.113.21"] = h
	st.World.Etcd.Members = append(st.World.Etcd.Members,
		observed.Member{ID: "000000000000000a", Name: "old", Healthy: observed.Yes, Alarms: []string{"NOSPACE"}})
	return st
}

// withMachines is a healthy cluster with a pool of hosts and Machines in every state.
func withMachines() StatusInput {
	st := healthy()
	node := func(name string, ready observed.Tri) {
		node := observed.Node{Name: name, Ready: ready, KubeletVersion: "1.36.3"}
		st.World.API.Nodes = append(st.World.API.Nodes, node)
		st.World.API.Pods = append(st.World.API.Pods, observed.Pod{
			Namespace: "kube-system", Name: "kube-proxy-" + name, Node: name, App: kubeProxy, Ready: observed.Yes,
		})
	}
	node("pool-1", observed.Yes)
	node("pool-2", observed.No)
	machine := func(name, phase, host string) observed.Machine {
		return observed.Machine{
			Namespace: "kube-system", Name: name, Owner: "MachineDeployment workers", Provider: "ssh", Phase: phase,
			Node: host, Host: host, WantedKubelet: "1.36.3", Kubelet: "1.36.3",
		}
	}
	slow, waits, wrong := machine("workers-a-2", "Updating", "pool-2"), machine("workers-a-3", "Pending", ""),
		machine("alone", "Failed", "")
	slow.Kubelet, slow.Waits = "1.35.4", "NotReady: the kubelet has stopped to report"
	waits.Kubelet, waits.Waits = "", "PoolEmpty: none of the 3 Hosts is free and matches this Machine"
	wrong.Owner, wrong.Kubelet, wrong.Error = "", "", "this version has no provider aws"
	gone := machine("workers-b-9", "Deleting", "")
	gone.Deleting = true
	st.World.API.Pool = &observed.Pool{
		Controllers: observed.No, Sets: 1,
		Deployments: []observed.MachineDeployment{
			{Namespace: "kube-system", Name: "workers", Kubelet: "1.36.3", Replicas: 3, Ready: 1, Updated: 2},
		},
		Machines: []observed.Machine{wrong, machine("workers-a-1", "Running", "pool-1"), slow, waits, gone},
		Hosts: []observed.PoolHost{
			{Name: "pool-1", Address: "203.0.113.31", State: "Joined", Machine: "kube-system/workers-a-1"},
			{Name: "pool-2", Address: "203.0.113.32", State: "Joined", Machine: "kube-system/workers-a-2"},
			{Name: "pool-3", Address: "203.0.113.33", State: "Returning", Machine: "kube-system/workers-b-1",
				Message: "its Machine no longer exists: the host does not answer"},
			{Name: "pool-4", Address: "203.0.113.34", State: "Free"},
		},
	}
	return st
}

// wholeMachines is a healthy cluster with a healthy Machine.
func wholeMachines() StatusInput {
	st := withMachines()
	p := *st.World.API.Pool
	p.Controllers, p.Machines, p.Hosts = observed.Yes, p.Machines[1:2], p.Hosts[:1]
	p.Deployments = []observed.MachineDeployment{p.Deployments[0]}
	p.Deployments[0].Replicas = 1
	st.World.API.Pool = &p
	return st
}
