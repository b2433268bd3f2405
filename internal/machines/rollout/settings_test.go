package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/testutil/short"
)

func TestTurnsForSettings(t *testing.T) {
	t.Parallel()
	differs := func(name string) Member { return Member{Name: name, Settings: SettingsDiffer, Ready: true} }
	with := func(m Member, change func(*Member)) Member {
		change(&m)
		return m
	}
	refused := func(name string) Member { return with(differs(name), func(m *Member) { m.Refused = "no such flag" }) }
	current := func(name string) Member { return Member{Name: name, Settings: SettingsCurrent, Ready: true} }
	four := []Member{differs("c"), differs("a"), differs("b"), differs("d")}
	half := Limits{AtOnce: func(n int) int { return n / 2 }, Canary: true}
	for name, c := range map[string]struct {
		members []Member
		limits  Limits
		next    string
		held    string
	}{
		"nobody":        {nil, half, "", ""},
		"all have them": {[]Member{current("a"), current("b")}, half, "", ""},
		"one first":     {four, half, "a", "waiting for Machine a"},
		"no canary":     {four, Limits{AtOnce: half.AtOnce}, "a b", "waiting for Machine a, b"},
		"one has them, and is Ready": {
			[]Member{current("a"), differs("b"), differs("c"), differs("d")}, half, "b c", "waiting for Machine b, c",
		},
		"one has them, and is not Ready": {[]Member{
			with(current("a"), func(m *Member) { m.Ready = false }), differs("b"), differs("c"), differs("d"),
		}, half, "", "waiting for Machine a (not Ready)"},
		"the canary is at it": {[]Member{
			with(differs("a"), func(m *Member) { m.Turn = true }), differs("b"), differs("c"), differs("d"),
		}, half, "", "waiting for Machine a (applying settings)"},
		"one is not known": {[]Member{
			with(differs("a"), func(m *Member) { m.Settings = SettingsUnknown }), differs("b"),
		}, Limits{}, "", "waiting for Machine a (not checked yet)"},
		"one is paused, and not known": {[]Member{
			with(differs("a"), func(m *Member) { m.Settings, m.Paused = SettingsUnknown, true }), differs("b"),
		}, Limits{}, "b", ""},
		"one is paused": {[]Member{
			with(differs("a"), func(m *Member) { m.Paused = true }), differs("b"),
		}, half, "b", ""},
		"one is being upgraded": {[]Member{
			with(differs("a"), func(m *Member) { m.Changing = true }), differs("b"),
		}, Limits{}, "", "waiting for Machine a (changing versions)"},
		"one gets them with its upgrade": {[]Member{
			with(differs("a"), func(m *Member) { m.Moving = true }), differs("b"),
		}, Limits{}, "b", ""},
		"one has refused them": {[]Member{refused("a"), differs("b"), differs("c"), differs("d")}, half, "b",
			"waiting for Machine b"},
		"one has refused them, without a canary": {[]Member{
			refused("a"), differs("b"), differs("c"), differs("d"),
		}, Limits{AtOnce: half.AtOnce}, "b", "waiting for Machine b"},
		"one has refused them, and one has them": {[]Member{
			refused("a"), current("b"), differs("c"), differs("d"),
		}, half, "c d", ""},
		"two have refused them": {[]Member{refused("a"), refused("b"), differs("c"), differs("d")}, half, "",
			"the settings have failed on the hosts of Machine a, b; a: no such flag"},
		"two have refused them, and two have them": {[]Member{
			refused("a"), current("b"), refused("c"), current("d"), differs("e"),
		}, half, "", "the settings have failed on the hosts of Machine a, c; a: no such flag"},
		"two have refused them, and three have them": {[]Member{
			refused("a"), current("b"), refused("c"), current("d"), current("e"), differs("f"),
		}, half, "f", ""},
		"one has refused them, and one died of them": {[]Member{
			refused("a"), with(current("b"), func(m *Member) { m.Ready, m.Overdue = false, true }), differs("c"),
		}, half, "", "the settings have failed on the hosts of Machine a, b; a: no such flag"},
		"one does not end its turn": {[]Member{
			with(differs("a"), func(m *Member) { m.Turn, m.Overdue = true, true }), differs("b"), differs("c"),
		}, half, "b", "waiting for Machine b"},
		"one is not Ready for long": {[]Member{
			with(differs("a"), func(m *Member) { m.Ready, m.Overdue = false, true }), differs("b"),
		}, half, "b", ""},
		"one is not looked at for long": {[]Member{
			{Name: "a", Ready: true, Overdue: true}, differs("b"),
		}, half, "b", ""},
		"many are silent": {[]Member{
			differs("z"), {Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "f"},
		}, Limits{}, "", "waiting for Machine a (not Ready), b (not Ready), c (not Ready), d (not Ready), " +
			"e (not Ready) and 1 more"},
	} {
		got := NextSettings(c.members, c.limits)
		if strings.Join(got.Next, " ") != c.next || got.Held != c.held {
			t.Errorf("%s: %q, held %q", name, got.Next, got.Held)
		}
	}
}

// settingsLife is a pool of machines with random events. It knows the true state of each host.
type settingsLife struct {
	t       *testing.T
	r       *rand.Rand
	limits  Limits
	want    int
	bad     map[int]bool // settings with which no host starts
	members []*settingsHost
	tried   map[int]map[string]bool // who got a turn, by bad settings
}

type settingsHost struct {
	name    string
	has     int
	turn    int // the settings of its turn; 0 is none
	refused int
	known   bool // checked since the desired settings changed
	ready   bool
	changes bool
	overdue bool // out of service for too long
}

func (l *settingsLife) member(h *settingsHost) Member {
	m := Member{Name: h.name, Ready: h.ready, Turn: h.turn != 0, Changing: h.changes}
	switch {
	case h.known && h.has == l.want:
		m.Settings = SettingsCurrent
	case h.known:
		m.Settings = SettingsDiffer
	}
	if h.refused == l.want {
		m.Refused = "it does not start"
	}
	m.Overdue = h.overdue && m.OutOfService() != ""
	return m
}

func (l *settingsLife) all() []Member {
	var out []Member
	for _, h := range l.members {
		out = append(out, l.member(h))
	}
	return out
}

// give gives a turn to some members that may have it, in any order, and checks the invariants.
func (l *settingsLife) give(all bool) {
	turns := NextSettings(l.all(), l.limits)
	l.r.Shuffle(len(turns.Next), func(i, j int) { turns.Next[i], turns.Next[j] = turns.Next[j], turns.Next[i] })
	for _, name := range turns.Next {
		if !all && l.r.IntN(2) == 0 {
			continue
		}
		at := slices.IndexFunc(l.members, func(h *settingsHost) bool { return h.name == name })
		h := l.members[at]
		h.turn = l.want
		if l.tried[l.want] == nil {
			l.tried[l.want] = map[string]bool{}
		}
		if h.refused == l.want {
			l.t.Fatalf("a second turn of %s, which has refused the settings", name)
		}
		l.tried[l.want][name] = true
	}
	if len(turns.Next) == 0 {
		return
	}
	out, proven := 0, !l.limits.Canary
	for _, h := range l.members {
		m := l.member(h)
		if m.OutOfService() != "" && !m.Overdue {
			out++
		}
		proven = proven || m.Settings == SettingsCurrent && m.Ready && !m.Turn
	}
	if turns.Stopped != "" {
		l.t.Fatalf("a turn although %s", turns.Stopped)
	}
	most := 1
	if proven {
		most = max(1, l.limits.AtOnce(len(l.members)))
	}
	if out > most {
		l.t.Fatalf("%d are out of service, and %d may be", out, most)
	}
}

// work lets hosts with a turn apply their settings.
func (l *settingsLife) work(h *settingsHost) {
	switch {
	case !h.ready || h.changes:
	case h.turn == 0:
		h.known = true
	case l.bad[h.turn]:
		h.refused, h.turn, h.known = h.turn, 0, h.turn == l.want
	default:
		h.has, h.turn, h.known = h.turn, 0, h.turn == l.want
	}
}

func (l *settingsLife) other() {
	l.want++
	l.bad[l.want] = l.r.IntN(3) == 0
	for _, h := range l.members {
		h.known = false
	}
}

func (l *settingsLife) happens() {
	h := l.members[l.r.IntN(len(l.members))]
	switch l.r.IntN(12) {
	case 0:
		h.ready = false
	case 1:
		h.ready = true
	case 2:
		h.changes, h.overdue = !h.changes, l.r.IntN(2) == 0
	case 3:
		l.other()
	case 4: // its Machine is replaced
		h.name, h.turn, h.refused, h.known, h.ready = fmt.Sprint("n-", l.r.IntN(1e9)), 0, 0, false, true
	case 5: // a new leader has checked no host
		for _, h := range l.members {
			h.known = false
		}
	default:
		l.work(h)
	}
}

// TestNoMoreAtOnceThanMayBe applies random events to pools. No turn exceeds the limit of hosts out of service. Settings
// that two hosts refused are tried on no other. In the end, all hosts have the settings, or enough have refused them.
func TestNoMoreAtOnceThanMayBe(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	refusals, ends := 0, 0
	for range short.Fewer(3000) {
		share := 1 + r.IntN(4)
		l := &settingsLife{t: t, r: r, want: 1, bad: map[int]bool{}, tried: map[int]map[string]bool{}}
		l.limits = Limits{Canary: r.IntN(2) == 0, AtOnce: func(n int) int { return n / share }}
		for i := range 1 + r.IntN(8) {
			l.members = append(l.members, &settingsHost{name: fmt.Sprint("m-", i), has: 1, known: true, ready: true})
		}
		for range 60 {
			l.happens()
			l.give(false)
		}
		for _, h := range l.members {
			h.ready, h.changes, h.overdue = true, false, false
		}
		for range 4 * len(l.members) {
			for _, h := range l.members {
				l.work(h)
			}
			l.give(true)
		}
		for settings, who := range l.tried {
			if l.limits.Canary && l.bad[settings] && len(who) > minFailed+l.left(who) {
				t.Fatalf("refused settings were tried on %v", who)
			}
		}
		turns := NextSettings(l.all(), l.limits)
		switch {
		case l.bad[l.want] && (turns.Stopped != "" || l.allRefused()):
			refusals++
		case slices.ContainsFunc(l.members, func(h *settingsHost) bool { return h.has != l.want || h.turn != 0 }):
			t.Fatalf("not all have what is wanted: %+v", l.all())
		default:
			ends++
		}
	}
	if refusals == 0 || ends == 0 {
		t.Errorf("%d lives ended with a refusal, %d with all as wanted", refusals, ends)
	}
}

// allRefused reports whether there are too few hosts to stop for.
func (l *settingsLife) allRefused() bool {
	return !slices.ContainsFunc(l.members, func(h *settingsHost) bool { return h.refused != l.want })
}

// TestOneHostHoldsUpNoOther has one misbehaving host in a pool. All others get the settings.
func TestOneHostHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, worst := range map[string]func(*Member){
		"it refuses":             func(m *Member) { m.Settings, m.Refused = SettingsDiffer, "no" },
		"its turn does not end":  func(m *Member) { m.Settings, m.Turn, m.Overdue = SettingsDiffer, true, true },
		"it is not Ready":        func(m *Member) { m.Settings, m.Ready, m.Overdue = SettingsDiffer, false, true },
		"it does not answer":     func(m *Member) { m.Settings, m.Overdue = SettingsUnknown, true },
		"its change hangs":       func(m *Member) { m.Changing, m.Overdue = true, true },
		"it dies with them":      func(m *Member) { m.Settings, m.Ready, m.Overdue = SettingsCurrent, false, true },
		"it refuses, not Ready":  func(m *Member) { m.Refused, m.Ready, m.Overdue = "no", false, true },
		"it refuses, and is mad": func(m *Member) { m.Refused, m.Turn, m.Changing, m.Overdue = "no", true, true, true },
	} {
		for _, canary := range []bool{true, false} {
			for at := range 4 {
				members := make([]Member, 4)
				for i := range members {
					members[i] = Member{Name: fmt.Sprint("m-", i), Settings: SettingsDiffer, Ready: true}
				}
				worst(&members[at])
				for range members {
					for _, next := range NextSettings(members, Limits{Canary: canary}).Next {
						i := slices.IndexFunc(members, func(m Member) bool { return m.Name == next })
						members[i].Settings = SettingsCurrent
					}
				}
				for i, m := range members {
					if i != at && m.Settings != SettingsCurrent {
						t.Errorf("%s, m-%d, canary %t: %s has not got them", name, at, canary, m.Name)
					}
				}
			}
		}
	}
}

// left counts names that are no longer members. Their Machines were deleted, so another host had to try.
func (l *settingsLife) left(who map[string]bool) int {
	n := 0
	for name := range who {
		if !slices.ContainsFunc(l.members, func(h *settingsHost) bool { return h.name == name }) {
			n++
		}
	}
	return n
}
