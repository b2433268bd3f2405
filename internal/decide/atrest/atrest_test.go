package atrest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/model/observed"
)

// testHost returns a host that runs and starts with these; after a bar follow those that it starts with, if others.
func testHost(id, text string) Host {
	running, next, differ := strings.Cut(text, "|")
	if !differ {
		next = running
	}
	return Host{ID: id, Running: [][]string{strings.Fields(running)}, Next: strings.Fields(next), Same: !differ}
}

// formatDecision returns a decision in a line.
func formatDecision(d Decision) string {
	out := string(d.Phase)
	if d.New {
		out += " (new " + d.Writer + ")"
	}
	for _, id := range d.Hosts {
		out += "; " + id + ": " + strings.Join(d.Providers[id], " ")
	}
	return strings.TrimPrefix(out, "; ")
}

func TestPhases(t *testing.T) {
	t.Parallel()
	on, off, rotate := Want{Encrypted: true}, Want{}, Want{Encrypted: true, Rotate: true}
	const k1, k2 = "kubeone-1", "kubeone-2"
	for name, c := range map[string]struct {
		want  Want
		hosts []string
		next  string
	}{
		"nothing is encrypted, nor wanted so": {off, []string{"identity", "identity"}, ""},
		"enabled: all learn": {
			on, []string{"identity", "identity"},
			"learn (new kubeone-1); a: identity kubeone-1; b: identity kubeone-1",
		},
		"one has learnt": {
			on, []string{"identity " + k1, "identity"},
			"learn; b: identity kubeone-1",
		},
		"one was told and does not run so": {
			on, []string{"identity|identity " + k1, "identity " + k1},
			"learn; a: identity kubeone-1",
		},
		"all have learnt": {
			on, []string{"identity " + k1, "identity " + k1},
			"use; a: kubeone-1 identity; b: kubeone-1 identity",
		},
		"one writes": {
			on, []string{k1 + " identity", "identity " + k1},
			"use; b: kubeone-1 identity",
		},
		"all write": {
			on, []string{k1 + " identity", k1 + " identity"},
			"forget; a: kubeone-1; b: kubeone-1",
		},
		"one has forgotten": {on, []string{k1, k1 + " identity"}, "forget; b: kubeone-1"},
		"encrypted":         {on, []string{k1, k1}, ""},
		"rotated": {
			rotate, []string{k1, k1},
			"learn (new kubeone-2); a: kubeone-1 kubeone-2; b: kubeone-1 kubeone-2",
		},
		"rotated in the middle of a rotation": {
			rotate, []string{k1 + " " + k2, k1},
			"learn; b: kubeone-1 kubeone-2",
		},
		"rotated: used": {
			on, []string{k1 + " " + k2, k1 + " " + k2},
			"use; a: kubeone-2 kubeone-1; b: kubeone-2 kubeone-1",
		},
		"rotated: forgotten": {
			on, []string{k2 + " " + k1, k2 + " " + k1},
			"forget; a: kubeone-2; b: kubeone-2",
		},
		"disabled": {
			off, []string{k1, k1},
			"learn; a: kubeone-1 identity; b: kubeone-1 identity",
		},
		"disabled: used": {
			off, []string{k1 + " identity", k1 + " identity"},
			"use; a: identity kubeone-1; b: identity kubeone-1",
		},
		"disabled: forgotten": {
			off, []string{"identity " + k1, "identity " + k1},
			"forget; a: ; b: ",
		},
		"disabled: one has forgotten":            {off, []string{"identity", "identity " + k1}, "forget; b: "},
		"disabled before any host wrote with it": {off, []string{"identity " + k1, "identity"}, "forget; a: "},
		"one host lost its own": {
			on, []string{k1, "identity"},
			"learn; a: kubeone-1 identity; b: identity kubeone-1",
		},
		"ten keys later": {
			rotate, []string{"kubeone-10"},
			"learn (new kubeone-11); a: kubeone-10 kubeone-11",
		},
		"a key of another name": {on, []string{"mine"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hosts []Host
			for i, text := range c.hosts {
				hosts = append(hosts, testHost(string(rune('a'+i)), text))
			}
			if got := formatDecision(Decide(hosts, c.want)); got != c.next {
				t.Errorf("got  %s\nwant %s", got, c.next)
			}
		})
	}
}

func TestWhoJoinsReadsAllAndWritesWhatAllRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ others, want string }{
		{"", ""},
		{"identity;identity", ""},
		{"identity;identity kubeone-1", "identity kubeone-1"},
		{"kubeone-1 identity;identity kubeone-1", "kubeone-1 identity"},
		{"kubeone-1;kubeone-1 identity", "kubeone-1 identity"},
		{"kubeone-2;kubeone-2", "kubeone-2"},
	} {
		var others []Host
		for _, text := range strings.Split(c.others, ";") {
			if text != "" {
				others = append(others, testHost(text, text))
			}
		}
		if got := strings.Join(Join(others), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.others, got, c.want)
		}
	}
}

func TestAHostWithoutEncryption(t *testing.T) {
	t.Parallel()
	if h := Of("a", nil); !h.Same || !slices.Equal(h.Next, []string{"identity"}) || len(h.Running) != 1 {
		t.Errorf("%+v", h)
	}
	lost := &observed.Encryption{Next: observed.EncryptionConfig{Digest: "d"}, Lost: true}
	if d := Decide([]Host{Of("a", lost)}, Want{Encrypted: true}); d.Phase != Learn {
		t.Errorf("%+v", d)
	}
}

// model is a cluster: its hosts' configurations and its stored Secrets, by names of keys.
type model struct {
	running, next [][]string
	stored        map[string]bool
}

// checkReadable returns an error if an API server cannot read something stored, now or after a restart.
func (m *model) checkReadable() error {
	for name := range m.stored {
		for i := range m.running {
			for _, keys := range [][]string{m.running[i], m.next[i]} {
				if !slices.Contains(keys, name) {
					return fmt.Errorf("host %d has %v, and something is stored by %s", i, keys, name)
				}
			}
		}
	}
	return nil
}

// storeSecrets makes every host store something.
func (m *model) storeSecrets() {
	for _, keys := range m.running {
		m.stored[keys[0]] = true
	}
}

func (m *model) hosts() []Host {
	var out []Host
	for i := range m.running {
		out = append(out, Host{
			ID: string(rune('a' + i)), Running: [][]string{m.running[i]}, Next: m.next[i],
			Same: slices.Equal(m.running[i], m.next[i]),
		})
	}
	return out
}

// applyPartly carries out part of a decision: each host gets its providers, and restarts, or only one of these. It may
// stop anywhere.
func (m *model) applyPartly(d Decision, r *rand.Rand) {
	if d.Phase == Forget {
		if r.IntN(4) == 0 {
			return
		}
		m.stored = map[string]bool{d.Writer: true} // written again, and checked
	}
	for _, id := range d.Hosts {
		i := int(id[0] - 'a')
		keys := d.Providers[id]
		if len(keys) == 0 {
			keys = []string{observed.Identity}
		}
		if r.IntN(5) == 0 {
			return
		}
		m.next[i] = keys
		if r.IntN(5) == 0 {
			return
		}
		m.running[i] = keys
		m.storeSecrets()
	}
}

// Whatever is desired, in whatever order, and wherever it stops: every API server can read what any other stores, and
// in the end everything is as desired.
func TestEveryHostReadsWhatOthersStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- the same each time
		m := &model{stored: map[string]bool{observed.Identity: true}}
		for range 1 + r.IntN(4) {
			m.running = append(m.running, []string{observed.Identity})
			m.next = append(m.next, []string{observed.Identity})
		}
		var want Want
		for range 60 {
			if r.IntN(6) == 0 {
				want = Want{Encrypted: r.IntN(3) > 0}
			}
			d := Decide(m.hosts(), Want{want.Encrypted, want.Encrypted && r.IntN(5) == 0})
			m.applyPartly(d, r)
			if err := m.checkReadable(); err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, d, err)
			}
		}
		if rounds := applyUntilDone(t, m, want, seed); rounds > 9 {
			t.Fatalf("seed %d: %d rounds", seed, rounds)
		}
	}
}

// applyUntilDone carries decisions out completely until none is left, and counts them.
func applyUntilDone(t *testing.T, m *model, want Want, seed uint64) int {
	t.Helper()
	for round := range 20 {
		d := Decide(m.hosts(), want)
		if d.Phase == Settled {
			if len(m.stored) > 0 && (m.running[0][0] == observed.Identity) == want.Encrypted {
				t.Fatalf("seed %d: settled at %v", seed, m.running)
			}
			return round
		}
		if d.Phase == Forget {
			m.stored = map[string]bool{d.Writer: true}
		}
		for _, id := range d.Hosts {
			i, keys := int(id[0]-'a'), d.Providers[id]
			if len(keys) == 0 {
				keys = []string{observed.Identity}
			}
			m.next[i], m.running[i] = keys, keys
			m.storeSecrets()
			if err := m.checkReadable(); err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, d, err)
			}
		}
	}
	t.Fatalf("seed %d: it does not end: %v", seed, m.running)
	return 0
}
