package rotation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
)

const etcd = observed.EtcdCA

func withAuthority(id string, a observed.Authority) Host {
	return Host{ID: id, Authorities: map[string]observed.Authority{etcd: a}}
}

func trusting(keys ...string) observed.Authority { return observed.Authority{Trusted: keys} }

func withNext(a observed.Authority, key string) observed.Authority {
	a.Next = key
	return a
}

func withBegun(a observed.Authority, p Phase) observed.Authority {
	a.BegunPhase = string(p)
	return a
}

func TestPhases(t *testing.T) {
	t.Parallel()
	learnt, used := withNext(trusting("old", "new"), "new"), withBegun(trusting("new", "old"), observed.Used)
	for name, c := range map[string]struct {
		hosts []Host
		want  Decision
	}{
		"settled": {[]Host{withAuthority("1", trusting("old")), withAuthority("2", trusting("old"))}, Decision{}},
		"one has learnt": {[]Host{withAuthority("1", learnt), withAuthority("2", trusting("old"))},
			Decision{Phase: Learn, Authorities: []string{etcd}, Hosts: []string{"2"}}},
		"one was cut off as it learnt": {[]Host{withAuthority("1", withBegun(learnt, Learn)),
			withAuthority("2", learnt)},
			Decision{Phase: Learn, Authorities: []string{etcd}, Hosts: []string{"1"}}},
		"one has come in between, without the key": {[]Host{withAuthority("1", learnt),
			withAuthority("2", trusting("old", "new"))},
			Decision{Phase: Learn, Authorities: []string{etcd}, Hosts: []string{"2"}}},
		"all have learnt": {[]Host{withAuthority("1", learnt), withAuthority("2", learnt)},
			Decision{Phase: Use, Authorities: []string{etcd}, Hosts: []string{"1", "2"}}},
		"one signs": {[]Host{withAuthority("1", used), withAuthority("2", learnt)},
			Decision{Phase: Use, Authorities: []string{etcd}, Hosts: []string{"2"}}},
		"one was cut off as it began to sign": {[]Host{withAuthority("1", withBegun(withNext(used, "new"), Use)),
			withAuthority("2", used)},
			Decision{Phase: Use, Authorities: []string{etcd}, Hosts: []string{"1"}}},
		"all sign": {[]Host{withAuthority("1", used), withAuthority("2", used)},
			Decision{Phase: Forget, Authorities: []string{etcd}, Hosts: []string{"1", "2"}}},
		"one has come in between, without the note": {
			[]Host{withAuthority("1", used), withAuthority("2", trusting("new", "old")), withAuthority("3", used)},
			Decision{Phase: Forget, Authorities: []string{etcd}, Hosts: []string{"2", "1", "3"}}},
		"they trust more than one, of their own": {
			[]Host{withAuthority("1", trusting("a", "b")), withAuthority("2", trusting("a", "b"))}, Decision{}},
		"one was cut off as it forgot": {[]Host{withAuthority("1", withBegun(trusting("new"), Forget)),
			withAuthority("2", trusting("new"))},
			Decision{Phase: Forget, Authorities: []string{etcd}, Hosts: []string{"1"}}},
		"they sign with different keys, and no host has been given one": {
			[]Host{withAuthority("1", trusting("b", "a")), withAuthority("2", trusting("a", "b"))},
			Decision{Phase: Learn, Authorities: []string{etcd}, Hosts: []string{"2"}}},
	} {
		if diff := cmp.Diff(c.want, Decide(c.hosts, []string{etcd}, false)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestARotationBeginsOnlyWhereNoneHas(t *testing.T) {
	t.Parallel()
	host := func(id string, e, f observed.Authority) Host {
		return Host{id, map[string]observed.Authority{etcd: e, observed.FrontProxyCA: f}}
	}
	both := []string{observed.FrontProxyCA, etcd}
	settled := []Host{host("1", trusting("a"), trusting("x")), host("2", trusting("a"), trusting("x"))}
	want := Decision{
		Phase: Learn, Authorities: []string{etcd, observed.FrontProxyCA}, New: []string{etcd, observed.FrontProxyCA},
		Hosts: []string{"1", "2"},
	}
	if diff := cmp.Diff(want, Decide(settled, both, true)); diff != "" {
		t.Error(diff)
	}
	half := []Host{host("1", withNext(trusting("a", "b"), "b"), trusting("x")), host("2", trusting("a"), trusting("x"))}
	want = Decision{Phase: Learn, Authorities: []string{etcd}, Hosts: []string{"2"}}
	if diff := cmp.Diff(want, Decide(half, both, true)); diff != "" {
		t.Errorf("what has begun goes first: %s", diff)
	}
	if got := Begun(half); !slices.Equal(got, []string{etcd}) {
		t.Errorf("begun: %v", got)
	}
	if got := Unknown(append(half, host("3", trusting("a"), observed.Authority{})), both); !slices.Equal(got,
		[]string{observed.FrontProxyCA}) {
		t.Errorf("unknown: %v", got)
	}
}

// machine is a control-plane host: its disk, and what its components read at their last start.
type machine struct {
	disk             observed.Authority
	shows            string   // the key that has signed what it presents
	running          []string // the keys that its components trust
	signs, startedAs string   // the key of its private file, and the one that its components sign with
}

// restartComponents makes the components read the disk.
func (m *machine) restartComponents() { m.running, m.startedAs = slices.Clone(m.disk.Trusted), m.signs }

// world is a control plane whose hosts are killed at any point.
type world struct {
	t        *testing.T
	random   *rand.Rand
	machines []*machine
	made     int
	trace    []string
}

func (w *world) hosts() []Host {
	var out []Host
	for i, m := range w.machines {
		out = append(out, withAuthority(fmt.Sprint(i), m.disk))
	}
	return out
}

// checkTrusted fails if a host presents or signs something that another host does not trust.
func (w *world) checkTrusted(at string) {
	w.trace = append(w.trace, at)
	for i, m := range w.machines {
		for j, other := range w.machines {
			for _, key := range []string{m.shows, m.startedAs} {
				if !slices.Contains(other.running, key) || !slices.Contains(other.disk.Trusted, key) {
					w.t.Fatalf("%d shows what %s has signed, and %d trusts %v, and will trust %v\n%v", i, key, j,
						other.running, other.disk.Trusted, w.trace)
				}
			}
		}
	}
}

// carryOut does a host's part of a phase, and stops at a random point.
func (w *world) carryOut(m *machine, d Decision, goal string) bool {
	then := After(m.disk, d.Phase, goal, Signers(w.hosts(), etcd))
	for n, part := range []func(){
		func() { m.disk.BegunPhase = string(d.Phase) },
		func() {
			if d.Phase == Learn {
				m.disk.Next = then.Next
			}
		},
		func() {
			if d.Phase == Use {
				m.signs = goal
			}
		},
		func() { m.disk.Trusted = then.Trusted },
		func() {
			if d.Phase == Use {
				m.shows = goal
			}
		},
		m.restartComponents,
		func() { m.disk.Next = then.Next },
		func() { m.disk.BegunPhase = then.BegunPhase },
	} {
		if w.random.IntN(12) == 0 {
			if w.random.IntN(2) == 0 {
				m.restartComponents() // a power cut
			}
			return false
		}
		part()
		w.checkTrusted(fmt.Sprintf("%s part %d of %v", d.Phase, n, m.disk))
	}
	return true
}

// hasPrivateKey reports whether some host has the private key: it signs with it, or was given it.
func (w *world) hasPrivateKey(key string) bool {
	return slices.ContainsFunc(w.machines, func(m *machine) bool { return m.disk.Next == key || m.signs == key })
}

// rejoinHost makes a host join again, with the state of another one that was not interrupted in a phase.
func (w *world) rejoinHost(m *machine) {
	for _, from := range w.machines {
		if from != m && slices.Contains([]string{"", observed.Used}, from.disk.BegunPhase) &&
			from.signs == from.disk.Signer() {
			m.disk = observed.Authority{Trusted: slices.Clone(from.disk.Trusted), BegunPhase: from.disk.BegunPhase}
			m.signs, m.shows = from.signs, from.signs
			m.restartComponents()
			w.checkTrusted("replaced")
			return
		}
	}
}

// Whichever hosts are killed, replaced, or lose power at any point: every host trusts what any host presents, and in
// the end all have the same, new key.
func TestEveryHostTrustsWhatOthersPresent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(600) {
		w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1))}
		for range 1 + seed%4 {
			m := &machine{disk: trusting("key-0"), shows: "key-0", signs: "key-0"}
			m.restartComponents()
			w.machines = append(w.machines, m)
		}
		fresh := true
		for turn := 0; ; turn++ {
			if turn == 2000 {
				t.Fatalf("seed %d does not end: %v", seed, w.hosts())
			}
			if w.random.IntN(20) == 0 {
				w.rejoinHost(w.machines[w.random.IntN(len(w.machines))])
			}
			d := Decide(w.hosts(), []string{etcd}, fresh)
			if d.Phase == Settled {
				break
			}
			goal := Goal(w.hosts(), etcd)
			if len(d.New) > 0 {
				w.made++
				goal = fmt.Sprintf("key-%d", w.made)
			} else if !w.hasPrivateKey(goal) && d.Phase != Forget {
				t.Fatalf("seed %d: no host has the key %s: %v\n%v", seed, goal, w.hosts(), w.trace)
			}
			first, err := strconv.Atoi(d.Hosts[0])
			if err != nil {
				t.Fatal(err)
			}
			w.carryOut(w.machines[first], d, goal)
			fresh = fresh && len(Begun(w.hosts())) == 0
		}
		for _, m := range w.machines {
			if m.signs != m.disk.Signer() || !slices.Equal(m.running, m.disk.Trusted) || len(m.disk.Trusted) != 1 {
				t.Fatalf("seed %d ends with %+v\n%v", seed, m, w.trace)
			}
		}
	}
}
