package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/host"
	"kubeone/internal/model/observed"
)

func TestAHostThatDoesNotAnswerIsAFact(t *testing.T) {
	t.Parallel()
	fail := func(class host.Class) error {
		return &host.Error{Class: class, Host: "h", What: "connect", Err: errors.New("no\nluck")}
	}
	broken := says(nil)
	broken.run = func(_ context.Context, c host.Cmd) (host.Result, error) {
		return host.Result{}, answer(c, []string{"kubeone-probe 1", "uid 0"})
	}
	tests := map[string]struct {
		host  *fakeHost
		reach observed.Reach
		class string
	}{
		"unreachable":   {fails(fail(host.Unreachable)), observed.Unreachable, "unreachable"},
		"hanging":       {fails(host.ErrSilent), observed.Unreachable, observed.ClassHanging},
		"timed out":     {fails(fail(host.Timeout)), observed.Unreachable, "unreachable"},
		"stranger":      {fails(errors.New("odd")), observed.Unreachable, "unreachable"},
		"lost":          {fails(fail(host.Lost)), observed.Unreachable, "lost"},
		"cut short":     {broken, observed.Unreachable, "lost"},
		"no login":      {fails(fail(host.Auth)), observed.Denied, "auth"},
		"changed key":   {fails(fmt.Errorf("h: %w", host.ErrHostKeyChanged)), observed.Denied, "hostkey"},
		"no sudo":       {fails(fail(host.Sudo)), observed.Denied, "sudo"},
		"bad target":    {fails(fail(host.Config)), observed.Denied, "config"},
		"script failed": {fails(&host.ExitError{Code: 127}), observed.Denied, "exit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Request{Targets: []Target{{ID: "h", Host: test.host, ControlPlane: true}}})
			if err != nil {
				t.Fatal(err)
			}
			got := r.World.Hosts["h"]
			if got.Problem == "" || strings.Contains(got.Problem, "\n") {
				t.Errorf("problem %q, want one line", got.Problem)
			}
			want := observed.Host{ID: "h", Reach: test.reach, Class: test.class, Problem: got.Problem}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("host (-want +got):\n%s", diff)
			}
			if r.World.API.Reached != observed.Unknown || r.World.Etcd.Reached != observed.Unknown || r.Access != nil ||
				r.Etcd != nil {
				t.Errorf("no host could be asked, and yet: %+v", r)
			}
		})
	}
}

func TestAPausedHostCostsItsOwnDeadlineOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		targets := []Target{{ID: "cp", Host: says(nil), ControlPlane: true}}
		for i := range 50 {
			targets = append(targets, Target{ID: fmt.Sprint("paused-", i), Host: hangs(nil)})
		}
		start := time.Now()
		r, err := Run(t.Context(), Request{Targets: targets})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 8*time.Second {
			t.Errorf("took %v, want the 8 s of the paused hosts", took)
		}
		if r.World.Hosts["cp"].Reach != observed.Reached || r.World.Hosts["paused-49"].Reach != observed.Unreachable {
			t.Errorf("hosts: %+v", r.World.Hosts)
		}
	})
}

// A host's time starts with its turn: the last hosts answer too, however long the first took.
func TestEachHostHasItsOwnTimeFromItsTurnOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var targets []Target
		for i := range 20 {
			h := hangs(nil)
			if i%2 > 0 {
				h = pausesBeforeItsFirstWord(7 * time.Second)
			}
			targets = append(targets, Target{ID: fmt.Sprint(i), Host: h})
		}
		start := time.Now()
		r, err := Run(t.Context(), Request{Targets: targets, Parallel: 2})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 10*8*time.Second {
			t.Errorf("took %v", took)
		}
		for i := range 20 {
			want := observed.Unreachable
			if i%2 > 0 {
				want = observed.Reached
			}
			if got := r.World.Hosts[fmt.Sprint(i)]; got.Reach != want {
				t.Errorf("host %d: %+v, want %s", i, got, want)
			}
		}
	})
}

// A host that has begun its answer makes room for the next one; the number of concurrent answers is limited.
func TestBegunAnswerFreesItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var targets []Target
		for i := range 2 * asksPerPlace {
			targets = append(targets, Target{ID: fmt.Sprint(i), Host: pausesAfterItsFirstWord(20 * time.Second)})
		}
		start := time.Now()
		r, err := Run(t.Context(), Request{Targets: targets, Parallel: 1})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 40*time.Second {
			t.Errorf("took %v, want two rounds of 20 s", took)
		}
		for id, h := range r.World.Hosts {
			if h.Reach != observed.Reached {
				t.Errorf("host %s: %+v", id, h)
			}
		}
	})
}

func TestAFirstContactGivesFactsButNoCredentials(t *testing.T) {
	t.Parallel()
	h := says([]string{"hostname CP-1"}, secretFile(adminConf, "A"))
	h.contacts = []host.FirstContact{{Fingerprint: "SHA256:bastion"}, {Fingerprint: "SHA256:host"}}
	r, err := Run(t.Context(), Request{Targets: []Target{{ID: "h", Host: h, ControlPlane: true}}})
	if err != nil {
		t.Fatal(err)
	}
	want := observed.Host{
		ID:           "h",
		Reach:        observed.Reached,
		Hostname:     "cp-1",
		FirstContact: "SHA256:bastion, SHA256:host",
	}
	if diff := cmp.Diff(want, r.World.Hosts["h"]); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	if len(h.commands) != 1 || h.commands[0].Secret || h.commands[0].Args[0] != argFacts {
		t.Errorf("commands %+v, want one that asks for facts only", h.commands)
	}
	if r.Access != nil {
		t.Error("there is access through a host with an unapproved key")
	}
}

// A key in place of the known one is a fact, whether accepted or not, but only where it can be accepted.
func TestOtherKeysAreFacts(t *testing.T) {
	t.Parallel()
	known := []host.KnownKey{{Fingerprint: "SHA256:old", Where: "known_hosts:1"}}
	other := []observed.OtherKey{{Name: "cp-2", Known: []string{"SHA256:old (known_hosts:1)"}, Offered: "SHA256:new"}}
	met := []host.FirstContact{
		{Fingerprint: "SHA256:bastion"}, {Fingerprint: "SHA256:new", AcceptAs: "cp-2", Replaces: known},
	}
	refused := func(as string) error {
		return &host.HostKeyChangedError{Host: "192.0.2.1:22", Known: known, Offered: "SHA256:new", AcceptAs: as}
	}
	for name, c := range map[string]struct {
		host     *fakeHost
		contacts []host.FirstContact
		class    string
		want     []observed.OtherKey
	}{
		"accepted":                 {says(nil), met, "", other},
		"refused":                  {fails(refused("cp-2")), nil, "hostkey", other},
		"refused, and pinned":      {fails(refused("")), nil, "hostkey", nil},
		"accepted, and not let in": {fails(&host.Error{Class: host.Auth, Err: errors.New("no")}), met, "auth", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.host.contacts = c.contacts
			r, err := Run(t.Context(), Request{Targets: []Target{{ID: "h", Host: c.host}}})
			if err != nil {
				t.Fatal(err)
			}
			got := r.World.Hosts["h"]
			if diff := cmp.Diff(c.want, got.OtherKeys); diff != "" || got.Class != c.class {
				t.Errorf("class %q, %s", got.Class, diff)
			}
		})
	}
}

func TestOnlyControlPlaneHostsAreAskedForCredentialsAndEachOnce(t *testing.T) {
	t.Parallel()
	cp, worker := says(nil), says(nil)
	_, err := Run(t.Context(),
		Request{Targets: []Target{{ID: "w", Host: worker}, {ID: "c", Host: cp, ControlPlane: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(cp.commands) != 1 || len(worker.commands) != 1 {
		t.Fatalf("%d and %d commands, want one for each host", len(cp.commands), len(worker.commands))
	}
	if c := cp.commands[0]; c.Args[0] != argCredentials || !c.Secret {
		t.Errorf("control plane was asked %+v", c.Args)
	}
	if c := worker.commands[0]; c.Args[0] != argFacts || c.Secret {
		t.Errorf("worker was asked %+v", c.Args)
	}
	if cp.commands[0].Script != worker.commands[0].Script {
		t.Error("the hosts got different scripts")
	}
}

func TestClockSkewIsMeasuredFromTheMiddle(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { now = now.Add(2 * time.Second); return now } // 2 s before, 2 s after
	h := says([]string{"clock 1800000063.0", "clock 1800000065.0"})
	p := &prober{Request: Request{Now: clock}.withDefaults()}
	a, err := p.runScript(t.Context(), Target{ID: "h", Host: h}, false, func() {}, func(Answer) {})
	if err != nil {
		t.Fatal(err)
	}
	if want := 61 * time.Second; a.Host.ClockSkew != want { // 64 less 3
		t.Errorf("skew %v, want %v", a.Host.ClockSkew, want)
	}
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	ok := Target{ID: "a", Host: says(nil)}
	for name, r := range map[string]Request{
		"no targets": {}, "twice": {Targets: []Target{ok, ok}}, "nameless": {Targets: []Target{{Host: says(nil)}}},
		"nothing": {Targets: []Target{{ID: "a"}}},
	} {
		if _, err := Run(t.Context(), r); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestACancelledProbeIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Request{Targets: []Target{{ID: "a", Host: hangs(nil)}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
}

func TestResultsHideCredentials(t *testing.T) {
	t.Parallel()
	c := Credentials{Kubeconfig: []byte("SECRET")}
	c.Etcd.Key = []byte("SECRET")
	a := Answer{Credentials: c}
	text, err := json.Marshal([]any{c, &c, a, &a})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		text = fmt.Appendf(text, format+format+format+format, c, &c, a, &a)
	}
	for _, bad := range []string{"SECRET", fmt.Sprintf("%x", "SECRET"), fmt.Sprint([]byte("SECRET")), "U0VDUkVU"} {
		if strings.Contains(string(text), bad) {
			t.Errorf("credentials show as %s in %s", bad, text)
		}
	}
}
