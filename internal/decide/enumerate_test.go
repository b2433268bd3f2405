package decide

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"
)

// all makes the enumeration complete: go test ./internal/decide -run Enumeration -all. Without it, worlds of at least
// three control-plane hosts that do not reach the questions of version, configuration and objects get only one
// combination of these in turn.
var all = flag.Bool("all", false, "enumerate every combination of the deciding facts")

// kind is one sort of control-plane host in the enumeration: its facts, its Node and its etcd member.
type kind struct {
	name   string
	host   func(desired.Host) observed.Host
	node   observed.Tri // of its Node; "none" if there is none
	member string       // alive, dead, unknown, learner, or empty
	calm   bool         // it does not make the control plane unhealthy
}

const noNode observed.Tri = "none"

func changedHost(how func(*observed.Host)) func(desired.Host) observed.Host {
	return func(h desired.Host) observed.Host {
		is := decidetest.Member(h)
		how(&is)
		return is
	}
}

// hostKinds returns the kinds of testdata/routes.txt, in the order of the slots.
func hostKinds() []kind {
	return []kind{
		{"healthy", decidetest.Member, observed.Yes, "alive", true},
		{"stopped", changedHost(func(h *observed.Host) {
			h.Kubelet.Active, h.Kubelet.State, h.Healthz = false, "inactive/dead", observed.No
		}), observed.Unknown, "alive", false},
		{"down", changedHost(func(h *observed.Host) {
			h.Containerd.Active, h.Kubelet.Active, h.Healthz = false, false, observed.No
			h.Containerd.State, h.Kubelet.State = "inactive/dead", "inactive/dead"
			h.APIServer, h.EtcdHealth, h.ControllerManager, h.Scheduler = observed.No, observed.No, observed.No,
				observed.No
		}), observed.Unknown, "dead", false},
		{"unready", decidetest.Member, observed.No, "alive", false},
		{"broken", changedHost(func(h *observed.Host) { h.APIServer = observed.No }), observed.Yes, "alive", false},
		{"brokenetcd", changedHost(func(h *observed.Host) { h.APIServer, h.EtcdHealth = observed.No, observed.No }),
			observed.Yes, "dead", false},
		{"wiped", func(h desired.Host) observed.Host {
			is := decidetest.Bare(h)
			is.Marker = decidetest.Member(h).Marker
			return is
		}, observed.No, "dead", false},
		{"cut", decidetest.Silent, observed.Yes, "alive", false},
		{"dead", decidetest.Silent, observed.Unknown, "dead", false},
		{"stranger", decidetest.Silent, noNode, "", false},
		{"unclear", func(h desired.Host) observed.Host {
			is := decidetest.Bare(h)
			is.KubeletConf, is.AdminConf, is.PKI, is.EtcdData = observed.Unknown, observed.Unknown, observed.Unknown,
				observed.Unknown
			return is
		}, observed.Unknown, "unknown", false},
		{"empty", decidetest.Bare, noNode, "", true},
		{"replaced", decidetest.Bare, observed.Unknown, "dead", false},
		{"begun", decidetest.Begun, noNode, "", true},
		{"begunetcd", func(h desired.Host) observed.Host {
			is := decidetest.Begun(h)
			is.AdminConf, is.PKI, is.EtcdData = observed.Yes, observed.Yes, observed.Yes
			return is
		}, noNode, "learner", true},
		{"foreign", func(h desired.Host) observed.Host {
			is := decidetest.Bare(h)
			is.EtcdData, is.PKI, is.CAHash = observed.Yes, observed.Yes, decidetest.OtherCA
			return is
		}, noNode, "", false},
		{"expired", changedHost(func(h *observed.Host) {
			h.Certificates = []observed.Certificate{
				{Name: "apiserver", Expired: true},
				{Name: "etcd/server", Expired: true},
			}
			h.APIServer, h.EtcdHealth = observed.No, observed.No
		}), observed.Yes, "dead", false},
		{"dataless", changedHost(func(h *observed.Host) {
			h.EtcdData, h.APIServer, h.EtcdHealth = observed.No, observed.No, observed.No
		}), observed.Yes, "dead", false},
	}
}

// workerKinds returns the summaries of the workers; the first is no worker.
func workerKinds() []kind {
	return []kind{
		{name: "none"},
		{"whealthy", decidetest.Member, observed.Yes, "", true},
		{"wmissing", decidetest.Bare, noNode, "", true},
		{"wbegun", decidetest.Begun, noNode, "", true},
		{"wstopped", changedHost(func(h *observed.Host) { h.Kubelet.Active = false }), observed.Unknown, "", true},
		{"wtorn", changedHost(func(h *observed.Host) { h.KubeletConf = observed.No }), observed.Unknown, "", true},
		{"will", decidetest.Member, observed.No, "", true},
		{"wlost", decidetest.Silent, observed.Unknown, "", true},
		{"wforeign", func(h desired.Host) observed.Host {
			is := decidetest.Member(h)
			is.Marker = &observed.Marker{Cluster: "beta", Complete: true}
			return is
		}, noNode, "", true},
	}
}

// versionRelations returns how the desired version relates to the one that all members run.
func versionRelations() []struct{ name, running string } {
	return []struct{ name, running string }{
		{"same", decidetest.Version}, {"higher", "1.36.1"}, {"skips", "1.34.5"}, {"lower", "1.37.0"}, {"vunknown", ""},
		{"forced", decidetest.Version},
	}
}

// combination is one point of the enumeration.
type combination struct {
	cps                       []int // kinds, ascending
	worker, relation          int
	api, members, drift, news bool // news: an addon must be applied
}

// factNames returns the raw facts, in the order of their slots.
func factNames() []string {
	var out []string
	for _, k := range append(hostKinds(), workerKinds()...) {
		out = append(out, k.name)
	}
	for _, r := range versionRelations() {
		out = append(out, r.name)
	}
	return append(out, "api", "members", "drift", "stale")
}

// countFacts counts the raw facts of the combination into slots that are zero.
func (c combination) countFacts(slots []int, kinds []kind, w int) {
	n, r := len(kinds), len(versionRelations())
	inList := slices.ContainsFunc(c.cps, func(k int) bool { return kinds[k].member != "" }) // an empty list is none
	for _, k := range c.cps {
		slots[k]++
	}
	slots[n+c.worker] = 1
	slots[n+w+c.relation] = 1
	if versionRelations()[c.relation].name == "forced" {
		slots[n+w] = 1 // the version is the same too
	}
	for i, b := range []bool{c.api, c.members && inList, c.drift, c.news} {
		slots[n+w+r+i] = boolValue(b)
	}
}

func (c combination) String() string {
	var cps []string
	for _, k := range c.cps {
		cps = append(cps, hostKinds()[k].name)
	}
	return fmt.Sprintf("%v worker %s, version %s, api %t, members %t, drift %t, stale %t",
		cps, workerKinds()[c.worker].name, versionRelations()[c.relation].name, c.api, c.members, c.drift, c.news)
}

// buildWorld builds the combination as the probes would find it.
func (c combination) buildWorld(want desired.Cluster, cps, workers []kind) Input {
	version := versionRelations()[c.relation].running
	count := boolValue(c.worker > 0)
	in := Input{Want: want, Addons: map[string]string{"flannel": "addon-1", "coredns": "addon-2"}}
	in.Is.Hosts = make(map[string]observed.Host, len(c.cps)+1)
	in.ForceUpgrade = versionRelations()[c.relation].name == "forced"
	in.Is.API = observed.API{
		Reached: observed.Of(c.api), Addons: map[string]string{"flannel": "addon-1", "coredns": "addon-2"},
		Record: &observed.Record{Cluster: decidetest.Cluster, ManifestDigest: decidetest.Digest},
	}
	if c.news {
		in.Is.API.Addons["coredns"] = "addon-1"
	}
	if c.members {
		in.Is.Etcd.Reached = observed.Yes
	}
	for i := range c.cps {
		in.addHost(in.Want.ControlPlane[i], cps[c.cps[i]], version)
	}
	for i := range count {
		in.addHost(in.Want.Workers[i], workers[c.worker], version)
	}
	if c.drift {
		in.Config = make(map[string]map[string]string, len(in.Is.Hosts))
		for id := range in.Is.Hosts {
			in.Config[id] = map[string]string{"kubelet": "config-2"}
		}
	}
	return in
}

// addHost places a host of a kind in the world, with its Node and its member.
func (in *Input) addHost(h desired.Host, k kind, version string) {
	is := k.host(h)
	if is.Kubelet.Version != "" {
		is.Kubelet.Version = version
	}
	if is.APIServerVersion != "" {
		is.APIServerVersion = version
	}
	in.Is.Hosts[h.ID] = is
	if k.node != noNode {
		n := decidetest.ReadyNode(h)
		n.Ready, n.KubeletVersion = k.node, version
		in.Is.API.Nodes = append(in.Is.API.Nodes, n)
	}
	if k.member == "" {
		return
	}
	m := decidetest.Voter(h)
	switch k.member {
	case "dead":
		m.Healthy = observed.No
	case "unknown":
		m.Healthy = observed.Unknown
	case "learner":
		m.Healthy, m.Learner = observed.No, true
	}
	in.Is.Etcd.Members = append(in.Is.Etcd.Members, m)
}

// forEachMultiset calls f with every multiset of n kinds, as ascending indexes.
func forEachMultiset(n, kinds int, f func([]int)) {
	set := make([]int, n)
	var fill func(i, from int)
	fill = func(i, from int) {
		if i == n {
			f(slices.Clone(set))
			return
		}
		for k := from; k < kinds; k++ {
			set[i] = k
			fill(i+1, k)
		}
	}
	fill(0, 0)
}

// tailCount returns how many combinations of version, configuration and objects there are.
func tailCount() int { return len(versionRelations()) * 4 }

func (c combination) withTail(n int) combination {
	c.relation, c.drift, c.news = n/4, n&1 > 0, n&2 > 0
	return c
}

// forEachCombination sends every combination for the multiset. If a host makes the control plane unhealthy and the
// world is large, it cycles through the tails instead of crossing them; in the largest worlds also through the workers.
func forEachCombination(cps []int, turn *int, f func(combination)) {
	hosts, others := hostKinds(), len(workerKinds())
	restless := slices.ContainsFunc(cps, func(k int) bool { return !hosts[k].calm })
	for know := range 4 {
		round := (restless || know != 3) && len(cps) > 2 && !*all
		for w := range others {
			c := combination{cps: cps, worker: w, api: know&1 > 0, members: know&2 > 0}
			*turn += 7 // coprime to the numbers of tails and workers, so that all occur
			switch {
			case !round:
				for n := range tailCount() {
					f(c.withTail(n))
				}
			case len(cps) < 5 || w == *turn/others%others:
				f(c.withTail(*turn % tailCount()))
			}
		}
	}
}

// exhaustive adds the worlds of one more host, which take a minute on two cores; make long sets it.
var exhaustive = flag.Bool("exhaustive", false, "take the worlds of one more host")

// TestEnumeration drives every combination of the deciding facts with up to four control-plane hosts, equal hosts
// counted once, through Decide, and compares the route with the independent table. With -exhaustive it is five.
func TestEnumeration(t *testing.T) {
	t.Parallel()
	most := 4
	switch {
	case *exhaustive, *all:
		most = 5
	case testing.Short():
		most = 2
	}
	table := readRules(t, "testdata/routes.txt", factNames())
	jobs := make(chan []int, 64)
	var mu sync.Mutex
	total, reached := 0, map[string]int{}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			e := examiner{
				t: t, table: table, cps: hostKinds(), workers: workerKinds(), reached: map[string]int{},
				raw: make([]int, len(factNames())), slots: make([]int, len(table.names)),
			}
			for set := range jobs {
				forEachCombination(set, &e.turn, e.examine)
			}
			mu.Lock()
			defer mu.Unlock()
			total += e.total
			for route, n := range e.reached {
				reached[route] += n
			}
		})
	}
	for n := 1; n <= most; n++ {
		forEachMultiset(n, len(hostKinds()), func(set []int) { jobs <- set })
	}
	close(jobs)
	workers.Wait()
	for _, r := range fsm.Cluster.Routes() {
		// In all these worlds the API is where it is desired, and Secrets are encrypted as desired;
		// TestWhereTheEndpointMovesAndWhereItStays and TestSecretsAreStoredAsTheManifestWants have the others.
		if reached[string(r)] == 0 && most > 1 && r != fsm.MoveEndpoint && r != fsm.Encrypt {
			t.Errorf("no world leads to %s", r)
		}
	}
	t.Logf("%d worlds of up to %d control-plane hosts: %v", total, most, reached)
}
