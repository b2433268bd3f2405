package identity_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/identity"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

const cluster = "prod"

// parseHost returns a host in the manifest: "ID=ADDRESS/HOSTNAME", where ID= and /HOSTNAME are optional.
func parseHost(text string, role desired.Role) desired.Host {
	id, rest, given := strings.Cut(text, "=")
	if !given {
		rest = text
	}
	address, name, _ := strings.Cut(rest, "/")
	if !given {
		id = address
	}
	return desired.Host{
		ID: id, HasOwnID: given, PublicAddress: address, PrivateAddress: address, Hostname: name, Role: role,
	}
}

func workerHosts(texts ...string) desired.Cluster {
	c := desired.Cluster{Name: cluster, ControlPlane: []desired.Host{parseHost("10.0.0.1", desired.ControlPlane)}}
	for _, text := range texts {
		c.Workers = append(c.Workers, parseHost(text, desired.Worker))
	}
	return c
}

// joinedWorker returns a worker that has joined. With an empty id its marker has no ID.
func joinedWorker(id, node string) observed.Host {
	return observed.Host{
		Reach: observed.Reached, Hostname: node, MachineID: "0123456789abcdef",
		Marker: &observed.Marker{Cluster: cluster, Role: "worker", Complete: true, ID: id, Node: node},
	}
}

func derivedWorker(id, node string) observed.Host {
	h := joinedWorker(id, node)
	h.Marker.Derived = true
	return h
}

// joiningWorker returns a worker whose join has not ended, and whose kubelet has its credentials.
func joiningWorker(node string) observed.Host {
	h := derivedWorker("", node)
	h.Marker.Complete, h.KubeletConf = false, observed.Yes
	return h
}

func bareHost() observed.Host {
	return observed.Host{Reach: observed.Reached, Hostname: "debian", MachineID: "fedcba9876543210"}
}

func namedHost(h observed.Host, hostname string) observed.Host {
	h.Hostname = hostname
	return h
}

// newWorld returns machines by the IDs of the manifest's hosts, in order, except the control-plane host.
func newWorld(want desired.Cluster, machines ...observed.Host) observed.World {
	w := observed.World{Hosts: map[string]observed.Host{}}
	for i, h := range want.Workers {
		if i < len(machines) {
			machines[i].ID = h.ID
			w.Hosts[h.ID] = machines[i]
		}
	}
	return w
}

func TestMachinesAreRecognised(t *testing.T) {
	t.Parallel()
	silent := observed.Host{Reach: observed.Unreachable}
	for name, c := range map[string]struct {
		manifest []string
		machines []observed.Host
		want     []string // "ID at ADDRESS" of each worker of the result
	}{
		"bare hosts are called by their address": {
			[]string{"10.0.1.1", "10.0.1.2"}, []observed.Host{bareHost(), bareHost()},
			[]string{"10.0.1.1 at 10.0.1.1", "10.0.1.2 at 10.0.1.2"},
		},
		"the manifest's ID goes before all": {
			[]string{"a=10.0.1.1", "b=10.0.1.2"}, []observed.Host{bareHost(), derivedWorker("10.0.1.2", "w2")},
			[]string{"a at 10.0.1.1", "b at 10.0.1.2"},
		},
		"a marker without an ID, of a cluster that was made before there were any": {
			[]string{"10.0.1.1"}, []observed.Host{joinedWorker("", "w1")}, []string{"10.0.1.1 at 10.0.1.1"},
		},
		"a derived ID stays when the address changes": {
			[]string{"10.0.1.9"}, []observed.Host{derivedWorker("10.0.1.1", "w1")}, []string{"10.0.1.1 at 10.0.1.9"},
		},
		"a manifest's ID stays when the manifest gives none any more": {
			[]string{"10.0.1.1"}, []observed.Host{joinedWorker("a", "w1")}, []string{"a at 10.0.1.1"},
		},
		"a new host where another one was installed": {
			[]string{"10.0.1.1", "10.0.1.9"}, []observed.Host{bareHost(), derivedWorker("10.0.1.1", "w1")},
			[]string{"10.0.1.1-fedcba98 at 10.0.1.1", "10.0.1.1 at 10.0.1.9"},
		},
		"swapped addresses, by ID": {
			[]string{"a=10.0.1.2", "b=10.0.1.1"}, []observed.Host{joinedWorker("b", "w2"), joinedWorker("a", "w1")},
			[]string{"a at 10.0.1.1", "b at 10.0.1.2"},
		},
		"swapped addresses, by hostname": {
			[]string{"10.0.1.2/w1", "10.0.1.1/w2"}, []observed.Host{joinedWorker("", "w2"), joinedWorker("", "w1")},
			[]string{"10.0.1.2 at 10.0.1.1", "10.0.1.1 at 10.0.1.2"},
		},
		"swapped addresses, by hostname, when IDs are given": {
			[]string{"a=10.0.1.2/w1", "b=10.0.1.1/w2"},
			[]observed.Host{derivedWorker("10.0.1.2", "w2"), derivedWorker("10.0.1.1", "w1")},
			[]string{"a at 10.0.1.1", "b at 10.0.1.2"},
		},
		"swapped names, in the middle of their joins": {
			[]string{"10.0.1.1/w2", "10.0.1.2/w1"}, []observed.Host{joiningWorker("w1"), joiningWorker("w2")},
			[]string{"10.0.1.1 at 10.0.1.2", "10.0.1.2 at 10.0.1.1"},
		},
		"a circle of three": {
			[]string{"a=10.0.1.1", "b=10.0.1.2", "c=10.0.1.3"},
			[]observed.Host{joinedWorker("c", "w3"), joinedWorker("a", "w1"), joinedWorker("b", "w2")},
			[]string{"a at 10.0.1.2", "b at 10.0.1.3", "c at 10.0.1.1"},
		},
		"one of two that have swapped does not answer": {
			[]string{"a=10.0.1.2", "b=10.0.1.1"}, []observed.Host{joinedWorker("b", "w2"), silent},
			[]string{"a at 10.0.1.1", "b at 10.0.1.2"},
		},
		"another cluster's marker says nothing": {
			[]string{"a=10.0.1.1"},
			[]observed.Host{
				{Reach: observed.Reached, Marker: &observed.Marker{Cluster: "other", ID: "z", Complete: true}},
			},
			[]string{"a at 10.0.1.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := workerHosts(c.manifest...)
			got := identity.Match(want, newWorld(want, c.machines...))
			if len(got.Contradictions) > 0 {
				t.Fatalf("contradictions: %+v", got.Contradictions)
			}
			if diff := cmp.Diff(c.want, hostAddresses(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func hostAddresses(r identity.Result) []string {
	var out []string
	for _, h := range r.Want.Workers {
		out = append(out, h.ID+" at "+h.PublicAddress)
	}
	return out
}

// A worker whose join has begun must not be taken for the silent control-plane host whose name the manifest gives it.
func TestABegunJoinIsClaimedInItsRole(t *testing.T) {
	t.Parallel()
	manifest := workerHosts("10.0.1.1/cp-1")
	manifest.ControlPlane[0].Hostname = "w1"
	is := newWorld(manifest, joiningWorker("w1"))
	is.Hosts["10.0.0.1"] = observed.Host{ID: "10.0.0.1", Reach: observed.Unreachable}
	if moved := identity.Match(manifest, is).Moved; len(moved) > 0 {
		t.Errorf("%+v", moved)
	}
}

// A silent member under another name would be taken for a new host, and its member for an orphan.
func TestASilentControlPlaneHostKeepsItsName(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]int{"cp-1": 1, "cp-2": 0} {
		manifest := workerHosts()
		manifest.ControlPlane[0].Hostname = "cp-2"
		is := newWorld(manifest)
		is.API = observed.API{
			Reached: observed.Yes, Nodes: []observed.Node{{Name: record}},
			Record: &observed.Record{Nodes: map[string]string{"10.0.0.1": record}},
		}
		if found := identity.Match(manifest, is).Contradictions; len(found) != want {
			t.Errorf("recorded as %s: %+v", record, found)
		}
	}
}

// The names of three control-plane hosts are mixed up, one machine is new and one is down. The latter is identified by
// its address, not by the remaining entry.
func TestASilentControlPlaneHostElsewhereKeepsItsName(t *testing.T) {
	t.Parallel()
	manifest := workerHosts("10.0.0.2/new", "10.0.0.3/cp-1")
	manifest.ControlPlane[0].Hostname = "cp-2"
	manifest.ControlPlane, manifest.Workers = append(manifest.ControlPlane, manifest.Workers...), nil
	for i := range manifest.ControlPlane {
		manifest.ControlPlane[i].Role = desired.ControlPlane
	}
	is := newWorld(manifest)
	first := derivedWorker("10.0.0.1", "cp-1")
	first.ID, first.Marker.Role = "10.0.0.1", string(desired.ControlPlane)
	is.Hosts["10.0.0.1"] = first
	second := bareHost()
	second.ID = "10.0.0.2"
	is.Hosts["10.0.0.2"] = second
	is.Hosts["10.0.0.3"] = observed.Host{ID: "10.0.0.3", Reach: observed.Unreachable}
	is.API = observed.API{
		Reached: observed.Yes, Nodes: []observed.Node{{Name: "cp-1"}, {Name: "cp-2"}, {Name: "cp-3"}},
		Record: &observed.Record{Nodes: map[string]string{
			"10.0.0.1": "cp-1", "10.0.0.2": "cp-2", "10.0.0.3": "cp-3",
		}},
	}
	want := []identity.Contradiction{{
		Kind: identity.OtherHostname, Host: "10.0.0.1", Address: "10.0.0.3", Wants: "cp-2", Says: "cp-3",
	}}
	if diff := cmp.Diff(want, identity.Match(manifest, is).Contradictions); diff != "" {
		t.Error(diff)
	}
}

func TestContradictionsNameBothSides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manifest []string
		machines []observed.Host
		nodes    []observed.Node
		record   map[string]string
		want     identity.Contradiction
	}{
		"two machines carry one ID": {
			manifest: []string{"a=10.0.1.1", "b=10.0.1.2"},
			machines: []observed.Host{joinedWorker("a", "w1"), joinedWorker("a", "w2")},
			want: identity.Contradiction{
				Kind: identity.SameID, Host: "a", Address: "10.0.1.1", OtherAddress: "10.0.1.2", Says: "a", Home: true,
			},
		},
		"two machines carry one derived ID": {
			manifest: []string{"10.0.1.1", "10.0.1.2"},
			machines: []observed.Host{derivedWorker("10.0.1.1", "w1"), derivedWorker("10.0.1.1", "w1")},
			want: identity.Contradiction{
				Kind: identity.SameID, Host: "10.0.1.1", Address: "10.0.1.1", OtherAddress: "10.0.1.2",
				Says: "10.0.1.1", Home: true,
			},
		},
		"two machines carry one ID, the second at its address": {
			manifest: []string{"a=10.0.1.1", "b=10.0.1.2"},
			machines: []observed.Host{joinedWorker("b", "w1"), joinedWorker("b", "w2")},
			want: identity.Contradiction{
				Kind: identity.SameID, Host: "b", Address: "10.0.1.2", OtherAddress: "10.0.1.1", Says: "b", Home: true,
			},
		},
		"two machines carry one derived ID, the second at its address": {
			manifest: []string{"10.0.1.1", "10.0.1.2"},
			machines: []observed.Host{derivedWorker("10.0.1.2", "w1"), derivedWorker("10.0.1.2", "w1")},
			want: identity.Contradiction{
				Kind: identity.SameID, Host: "10.0.1.2", Address: "10.0.1.2", OtherAddress: "10.0.1.1",
				Says: "10.0.1.2", Home: true,
			},
		},
		"an ID that another machine carries already": {
			manifest: []string{"10.0.1.1", "a=10.0.1.2"}, machines: []observed.Host{joinedWorker("a", "w1"),
				bareHost()},
			want: identity.Contradiction{
				Kind: identity.Displaced, Host: "10.0.1.1", Address: "10.0.1.1", Says: "a", OtherAddress: "10.0.1.2",
			},
		},
		"another ID than the machine has": {
			manifest: []string{"a=10.0.1.1"}, machines: []observed.Host{joinedWorker("z", "w1")},
			want: identity.Contradiction{Kind: identity.OtherID, Host: "a", Address: "10.0.1.1", Says: "z"},
		},
		"another hostname than a member has": {
			manifest: []string{"a=10.0.1.1/new"}, machines: []observed.Host{joinedWorker("a", "w1")},
			want: identity.Contradiction{
				Kind: identity.OtherHostname, Host: "a", Address: "10.0.1.1", Wants: "new", Says: "w1",
			},
		},
		"another hostname than a join has begun with": {
			manifest: []string{"10.0.1.1/new"}, machines: []observed.Host{joiningWorker("w1")},
			want: identity.Contradiction{
				Kind: identity.OtherHostname, Host: "10.0.1.1", Address: "10.0.1.1", Wants: "new", Says: "w1",
			},
		},
		"another hostname than the Node at its address has": {
			manifest: []string{"a=10.0.1.1/new"}, machines: []observed.Host{joinedWorker("a", "")},
			nodes: []observed.Node{{Name: "w1", Addresses: []string{"10.0.1.1", "w1"}}},
			want: identity.Contradiction{
				Kind: identity.OtherHostname, Host: "a", Address: "10.0.1.1", Wants: "new", Says: "w1",
			},
		},
		"names swapped, one machine new and the other silent": {
			manifest: []string{"10.0.1.1/w2", "10.0.1.2/w1"},
			machines: []observed.Host{namedHost(bareHost(), "w2"), {}},
			nodes:    []observed.Node{{Name: "w1"}, {Name: "w2", Addresses: []string{"10.0.1.2", "w2"}}},
			record:   map[string]string{"10.0.1.1": "w1", "10.0.1.2": "w2"},
			want: identity.Contradiction{
				Kind: identity.OtherHostname, Host: "10.0.1.2", Address: "10.0.1.2", Wants: "w1", Says: "w2",
				OtherAddress: "10.0.1.1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := workerHosts(c.manifest...)
			is := newWorld(want, c.machines...)
			is.API = observed.API{Reached: observed.Yes, Nodes: c.nodes, Record: &observed.Record{Nodes: c.record}}
			if diff := cmp.Diff([]identity.Contradiction{c.want}, identity.Match(want, is).Contradictions); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever machines say, and wherever they are: every machine is one host, hosts that say their ID get it, and the
// order of the manifest does not matter.
func TestEveryMachineIsOneHost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- a test
		want, is := randomWorld(random)
		got := identity.Match(want, is)
		if again := identity.Match(want, is); cmp.Diff(got, again) != "" {
			t.Fatalf("seed %d: two answers to one question", seed)
		}
		checkPermutation(t, seed, want, is, got)
		if len(got.Contradictions) > 0 {
			continue
		}
		shuffled := want
		shuffled.Workers = slices.Clone(want.Workers)
		random.Shuffle(len(shuffled.Workers), func(i, j int) {
			shuffled.Workers[i], shuffled.Workers[j] = shuffled.Workers[j], shuffled.Workers[i]
		})
		other := identity.Match(shuffled, is)
		if diff := cmp.Diff(sortedIDs(hostAddresses(got)), sortedIDs(hostAddresses(other))); diff != "" ||
			len(other.Contradictions) > 0 {
			t.Fatalf("seed %d: the order of the manifest decides who is who: %s%+v", seed, diff, other.Contradictions)
		}
	}
}

func checkPermutation(t *testing.T, seed uint64, want desired.Cluster, is observed.World, got identity.Result) {
	t.Helper()
	at := map[identity.ProbeKey]bool{}
	for _, key := range got.Reached {
		at[key] = true
	}
	if n := len(want.Hosts()); len(at) != n || len(got.Reached) != n || len(got.Want.Hosts()) != n {
		t.Fatalf("seed %d: %d machines for %d hosts: %v", seed, len(at), n, got.Reached)
	}
	for _, h := range got.Want.Hosts() {
		seen, asked := got.Is.Hosts[h.ID]
		if !asked {
			continue
		}
		if asked && seen.ID != h.ID || seen.Hostname != is.Hosts[string(got.Reached[h.ID])].Hostname {
			t.Fatalf("seed %d: %s has another machine's facts", seed, h.ID)
		}
		m := seen.Marker
		if m != nil && h.HasOwnID && m.ID != "" && !m.Derived && m.ID != h.ID && len(got.Contradictions) == 0 {
			t.Fatalf("seed %d: %s is the machine that says it is %s", seed, h.ID, m.ID)
		}
	}
}

func sortedIDs(in []string) []string {
	slices.Sort(in)
	return in
}

// randomWorld returns a manifest of some workers, with and without IDs, whose machines are in any order.
func randomWorld(random *rand.Rand) (desired.Cluster, observed.World) {
	n := 1 + random.IntN(4)
	texts, machines := make([]string, n), make([]observed.Host, n)
	for i := range n {
		texts[i] = fmt.Sprintf("10.0.1.%d", i)
		if random.IntN(2) == 0 {
			texts[i] = fmt.Sprintf("id%d=%s", i, texts[i])
		}
		if random.IntN(3) == 0 {
			texts[i] += fmt.Sprintf("/w%d", i)
		}
		switch random.IntN(5) {
		case 0:
			machines[i] = bareHost()
		case 1:
			machines[i] = derivedWorker(fmt.Sprintf("10.0.1.%d", i), fmt.Sprintf("w%d", i))
		case 2:
			machines[i] = joinedWorker("", fmt.Sprintf("w%d", i))
		case 3:
			machines[i] = observed.Host{Reach: observed.Unreachable}
		default:
			machines[i] = joinedWorker(fmt.Sprintf("id%d", random.IntN(5)), fmt.Sprintf("w%d", i))
		}
	}
	if random.IntN(2) == 0 {
		random.Shuffle(n, func(i, j int) { machines[i], machines[j] = machines[j], machines[i] })
	}
	want := workerHosts(texts...)
	return want, newWorld(want, machines...)
}

// The cluster's record knows the Nodes of machines that do not say them.
func TestTheRecordNamesTheNodesOfSilentHosts(t *testing.T) {
	t.Parallel()
	silent := observed.Host{Reach: observed.Unreachable}
	for name, c := range map[string]struct {
		machines []observed.Host
		nodes    []string // of the cluster
		record   map[string]string
		want     []string // hostnames of the workers of the result
	}{
		"both are silent, and have swapped their addresses": {
			[]observed.Host{silent, silent}, []string{"w1", "w2"}, map[string]string{"a": "w1", "b": "w2"},
			[]string{"w1", "w2"},
		},
		"one says who it is": {
			[]observed.Host{silent, joinedWorker("b", "w9")}, []string{"w1", "w9"},
			map[string]string{"a": "w1", "b": "w2"},
			[]string{"w1", "w9"},
		},
		"another one has that name": {[]observed.Host{silent, joinedWorker("b", "w1")}, []string{"w1"},
			map[string]string{"a": "w1"}, []string{"", "w1"}},
		"there is no such Node": {[]observed.Host{silent, silent}, nil, map[string]string{"a": "w1"},
			[]string{"", ""}},
		"a record of before": {[]observed.Host{silent, silent}, []string{"w1"}, nil, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := workerHosts("a=10.0.1.1", "b=10.0.1.2")
			is := newWorld(want, c.machines...)
			is.API.Record = &observed.Record{Nodes: c.record}
			for _, node := range c.nodes {
				is.API.Nodes = append(is.API.Nodes, observed.Node{Name: node})
			}
			r := identity.Match(want, is)
			var got []string
			for _, h := range r.Want.Workers {
				got = append(got, r.Is.Hosts[h.ID].Hostname)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A worker that has lost its marker does not join the control plane because the manifest says so: that would change its
// role in place.
func TestAWorkerWithoutAMarkerIsAWorker(t *testing.T) {
	t.Parallel()
	worker := bareHost()
	worker.Hostname, worker.KubeletConf, worker.EtcdData = "w1", observed.Yes, observed.No
	worker.PKI, worker.AdminConf = observed.No, observed.No
	with := func(change func(*observed.Host)) observed.Host {
		h := worker
		change(&h)
		return h
	}
	for name, c := range map[string]struct {
		machine observed.Host
		node    observed.Node
		members []observed.Member
		other   bool
	}{
		"its Node is a worker's":             {machine: worker, node: observed.Node{Name: "w1"}, other: true},
		"its Node is a control-plane host's": {machine: worker, node: observed.Node{Name: "w1", ControlPlane: true}},
		"etcd lists its member": {
			machine: worker, node: observed.Node{Name: "w1"}, members: []observed.Member{{Name: "w1"}},
		},
		"another's Node": {machine: worker, node: observed.Node{Name: "w2"}},
		"it is bare":     {machine: namedHost(bareHost(), "w1"), node: observed.Node{Name: "w1"}},
		"it has the CAs: it was about to join": {
			machine: with(func(h *observed.Host) { h.PKI = observed.Yes }), node: observed.Node{Name: "w1"},
		},
		"it did not say whether it has them": {
			machine: with(func(h *observed.Host) { h.PKI = observed.Unknown }), node: observed.Node{Name: "w1"},
		},
		"it has data of etcd": {
			machine: with(func(h *observed.Host) { h.EtcdData = observed.Yes }), node: observed.Node{Name: "w1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := desired.Cluster{Name: cluster, ControlPlane: []desired.Host{parseHost("10.0.0.1",
				desired.ControlPlane)}}
			want.ControlPlane[0].Hostname = "w1"
			is := observed.World{Hosts: map[string]observed.Host{want.ControlPlane[0].ID: c.machine}}
			is.API = observed.API{Reached: observed.Yes, Nodes: []observed.Node{c.node}}
			is.Etcd = observed.Etcd{Reached: observed.Yes, Members: c.members}
			found := identity.Match(want, is).Contradictions
			if got := len(found) == 1 && found[0].Kind == identity.OtherRole; got != c.other || len(found) > 1 {
				t.Errorf("got %+v, want another role: %t", found, c.other)
			}
		})
	}
}

// TestRolesAreWhatOthersKnow distinguishes a control-plane host that the manifest calls a worker from a worker that
// only claims to be one, which must not stop work on others.
func TestRolesAreWhatOthersKnow(t *testing.T) {
	t.Parallel()
	moved := joinedWorker("", "cp-2")
	moved.Marker.Role, moved.EtcdData = "control-plane", observed.Yes
	lost := moved
	lost.Marker = &observed.Marker{Cluster: cluster, Role: "worker", Complete: true}
	silent := observed.Host{Reach: observed.Unreachable}
	listed := []observed.Member{{ID: "1", Name: "cp-2", PeerURLs: []string{"https://10.0.1.1:2380"}}}
	joined := []observed.Node{{Name: "cp-2", Addresses: []string{"10.0.1.1"}, ControlPlane: true}}
	for name, c := range map[string]struct {
		hostname string
		machine  observed.Host
		members  []observed.Member
		nodes    []observed.Node
		record   string // the host's Node in the cluster record
		mute     bool   // neither the API nor etcd answers
		other    bool
	}{
		"etcd has its member":                 {machine: moved, members: listed, other: true},
		"the API has its Node":                {machine: moved, nodes: joined, other: true},
		"its marker is a worker's":            {machine: lost, members: listed, other: true},
		"it is down, and etcd has its member": {machine: silent, members: listed, other: true},
		"it is down, and known by its name":   {hostname: "cp-2", machine: silent, nodes: joined, other: true},
		"neither the API nor etcd answers":    {machine: moved, mute: true, other: true},
		"etcd has its member, and the manifest another name": {
			hostname: "w1", machine: moved, members: listed, other: true,
		},
		"it alone says so":                      {machine: moved, nodes: []observed.Node{{Name: "cp-2"}}},
		"a bare one at a dead member's address": {machine: bareHost(), members: listed, nodes: joined},
		"one that is down, at a dead member's address, with a name of its own": {
			hostname: "w1", machine: silent, members: listed, nodes: joined,
		},
		"it is down, with another name in the manifest, and the record knows its own": {
			hostname: "w1", machine: silent, members: listed, nodes: joined, record: "cp-2", other: true,
		},
		"a worker": {machine: joinedWorker("", "w1"), nodes: []observed.Node{{Name: "w1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := workerHosts(strings.TrimSuffix("10.0.1.1/"+c.hostname, "/"))
			is := newWorld(want, c.machine)
			if !c.mute {
				is.API = observed.API{
					Reached: observed.Yes, Nodes: c.nodes,
					Record: &observed.Record{Nodes: map[string]string{"10.0.1.1": c.record}},
				}
				is.Etcd = observed.Etcd{Reached: observed.Yes, Members: c.members}
			}
			found := identity.Match(want, is).Contradictions
			if got := len(found) == 1 && found[0].Kind == identity.OtherRole; got != c.other || len(found) > 1 {
				t.Errorf("got %+v, want another role: %t", found, c.other)
			}
		})
	}
}

func TestARequestsHostsAreCalledAsTheyAreNow(t *testing.T) {
	t.Parallel()
	ids := identity.IDs{"192.0.2.1": "192.0.2.2", "192.0.2.2": "192.0.2.1"}
	if diff := cmp.Diff([]string{"192.0.2.1", "w-3"}, ids.OfAll("192.0.2.2", "w-3")); diff != "" {
		t.Error(diff)
	}
	if all := ids.OfAll(); all != nil { // no host is named, which means all
		t.Errorf("got %v", all)
	}
}

// A worker does not become another host by its claim, if that host's Node has another address or is of the control
// plane. That also holds if the manifest no longer has that host.
func TestAWorkerIsNoHostThatLivesElsewhere(t *testing.T) {
	t.Parallel()
	const other = "10.0.9.9"
	for name, c := range map[string]struct {
		node observed.Node
		is   bool
	}{
		"its Node is Ready elsewhere":      {observed.Node{Addresses: []string{other}, Ready: observed.Yes}, false},
		"its Node is of the control plane": {observed.Node{Addresses: []string{other}, ControlPlane: true}, false},
		"its Node is at the machine's address": {
			observed.Node{Addresses: []string{"10.0.1.1"}, Ready: observed.Yes}, true,
		},
		"its Node is not Ready, as it moved": {observed.Node{Addresses: []string{other}}, true},
	} {
		for _, manifests := range []bool{true, false} {
			machine := joinedWorker(other, "w9")
			machine.Marker.Derived = !manifests
			want := workerHosts("10.0.1.1")
			is := newWorld(want, machine)
			c.node.Name = "w9"
			is.API = observed.API{
				Reached: observed.Yes, Nodes: []observed.Node{c.node},
				Record: &observed.Record{Nodes: map[string]string{other: "w9"}},
			}
			id := map[bool]string{true: other, false: "10.0.1.1"}[c.is]
			got := identity.Match(want, is)
			if h := got.Want.Workers[0]; h.ID != id || h.HasOwnID != (manifests && c.is) {
				t.Errorf("%s: it is %s, whose ID is the manifest's: %v", name, h.ID, h.HasOwnID)
			}
		}
	}
}

// A worker that claims to be a control-plane host would get the cluster's keys. While that host is silent or bare, the
// claim is not enough. If the machine at the other address agrees, the two have swapped addresses.
func TestAWorkerIsNoControlPlaneHostByItsOwnWord(t *testing.T) {
	t.Parallel()
	silent := observed.Host{Reach: observed.Unreachable}
	for name, c := range map[string]struct {
		there    observed.Host // at the control-plane host's address
		swapped  bool
		complete bool
	}{
		"it is silent":               {there: silent},
		"it is silent, joined":       {there: silent, complete: true},
		"it is bare":                 {there: bareHost()},
		"it has no ID in its note":   {there: joinedWorker("", "cp-2")},
		"it has a derived ID":        {there: derivedWorker("10.0.0.2", "cp-2")},
		"it says that it is a":       {there: joinedWorker("a", "w1"), swapped: true},
		"it says that it has joined": {there: joinedWorker("cp", "cp-2"), complete: true},
	} {
		for _, id := range []string{"cp", ""} {
			want := workerHosts("a=10.0.1.1/w1")
			other := parseHost("cp=10.0.0.2/cp-2", desired.ControlPlane)
			if id == "" && !c.swapped {
				other = parseHost("10.0.0.2/cp-2", desired.ControlPlane)
			}
			want.ControlPlane = append(want.ControlPlane, other)
			claims := joiningWorker("cp-2")
			claims.Marker.ID, claims.Marker.Derived = other.ID, id == ""
			claims.Marker.Role, claims.Marker.Complete = "control-plane", c.complete
			is := newWorld(want, claims)
			is.Hosts[other.ID] = c.there
			got := identity.Match(want, is)
			if moved := len(got.Moved) > 0; moved != c.swapped {
				t.Errorf("%s: moved: %+v, %+v", name, got.Moved, got.Contradictions)
			}
		}
	}
}
