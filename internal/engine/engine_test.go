package engine

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"kubeone/internal/apply"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/desired"
	"kubeone/internal/host"
	"kubeone/internal/host/sshtest"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
)

func TestMistakesAreFoundBeforeAnyHostIsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		text   string
		change func(*Options)
		says   string
	}{
		{"no manifest", manifestText, func(o *Options) { o.Manifest += ".gone" }, "kubeone.yaml.gone"},
		{"a limit that is no host", manifestText, func(o *Options) { o.Limit = []string{"nobody"} }, `--limit names "nobody", which is no host of`},
		{"the hosts to choose from", manifestText, func(o *Options) { o.Limit = []string{"nobody"} }, "its hosts are 192.0.2.11, worker"},
		{"no bundle", manifestText, func(o *Options) { o.Bundles = []string{"/nonexistent/bundle.tar"} }, "/nonexistent/bundle.tar"},
		{"a bundle that is none", manifestText, func(o *Options) { o.Bundles = []string{o.Manifest} }, "kubeone.yaml"},
		{
			"a host key that is none", strings.Replace(manifestText, "sshUsername: root", "sshUsername: root\n      sshHostPublicKey: bm90IGEga2V5", 1),
			func(*Options) {}, "is not an SSH public key",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options(t, c.text)
			c.change(&o)
			e, err := Open(t.Context(), o)
			if err == nil {
				e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

func TestALimitNamesHostsInAnyWay(t *testing.T) {
	t.Parallel()
	o := options(t, manifestText)
	o.Limit = []string{"WORKER", "192.0.2.11"}
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if diff := cmp.Diff(map[string]bool{"192.0.2.21": true, "192.0.2.11": true}, e.limit); diff != "" {
		t.Error(diff)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	key, err := sshtest.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	wire := base64.StdEncoding.EncodeToString(key.PublicKey().Marshal())
	plain := desired.Host{ID: "192.0.2.1", PublicAddress: "192.0.2.1"}
	full := desired.Host{ID: "192.0.2.1", PublicAddress: "192.0.2.1", Hostname: "cp-1", SSH: desired.SSH{
		User: "admin", Port: 2222, KeyFile: "key", CertFile: "cert", AgentSocket: "sock", HostPublicKey: wire,
		Bastion: "192.0.2.9", BastionPort: 22, BastionUser: "jump", BastionKeyFile: "other", BastionHostPublicKey: wire,
	}}
	brief := full
	brief.SSH.BastionUser, brief.SSH.BastionKeyFile, brief.SSH.BastionHostPublicKey, brief.SSH.HostPublicKey = "", "", "", ""
	bastion := func(user, file string, keys []ssh.PublicKey) []host.Target {
		return []host.Target{{Name: "192.0.2.9", Address: "192.0.2.9", Port: 22, User: user, KeyFile: file, AgentSocket: "sock", HostKeys: keys}}
	}
	first := host.Target{Name: "cp-1", Address: "192.0.2.1", Port: 2222, User: "admin", KeyFile: "key", CertFile: "cert", AgentSocket: "sock"}
	withKeys, without := first, first
	keys := []ssh.PublicKey{key.PublicKey()}
	withKeys.HostKeys, withKeys.Bastions = keys, bastion("jump", "other", keys)
	without.Bastions = bastion("admin", "key", nil)
	for name, c := range map[string]struct {
		host desired.Host
		want host.Target
	}{
		"what the manifest does not say stays zero": {plain, host.Target{Name: "192.0.2.1", Address: "192.0.2.1"}},
		"all that it can say":                       {full, withKeys},
		"a bastion like its host":                   {brief, without},
	} {
		got, err := target(c.host)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) })); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, bad := range []desired.SSH{{HostPublicKey: "%"}, {HostPublicKey: "bm90IGEga2V5"}, {Bastion: "b", BastionHostPublicKey: "%"}} {
		if _, err := target(desired.Host{ID: "192.0.2.1", SSH: bad}); err == nil || !strings.Contains(err.Error(), "host public key") {
			t.Errorf("%+v: got %v", bad, err)
		}
	}
}

func TestALookAtBareHostsPlansTheirInstallation(t *testing.T) {
	t.Parallel()
	e, _ := open(t)
	first, err := e.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.Decision().Route != fsm.Install || len(first.Scripts) != 2 {
		t.Fatalf("route %s, %d scripts, problems %v", first.Decision().Route, len(first.Scripts), first.Decision().Problems)
	}
	for _, s := range first.Plan.Steps {
		if s.Intent.Kind.OnHost() && s.Intent.Digest == "" {
			t.Errorf("%s has no digest of its script", s.ID)
		}
	}
	again, err := e.Look(t.Context())
	if err != nil || again.Plan.Digest() != first.Plan.Digest() {
		t.Errorf("a second look gives another plan, %v", err)
	}
}

func TestAWorldThatChangedIsNotTouched(t *testing.T) {
	t.Parallel()
	e, players := open(t)
	look, err := e.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	players["192.0.2.21"].say("missing\tlosetup\n", "") // somebody installed it
	_, err = e.Apply(t.Context(), look, ApplyOptions{RunID: "run-1", Emit: func(apply.Event) {}})
	if !errors.Is(err, ErrWorldChanged) {
		t.Errorf("got %v", err)
	}
	for id, p := range players {
		if done := p.changes(); len(done) > 0 {
			t.Errorf("%s was asked to %q", id, done)
		}
	}
}

func TestTheSameWorldIsWorkedOn(t *testing.T) {
	t.Parallel()
	e, players := open(t)
	look, err := e.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Apply(t.Context(), look, ApplyOptions{RunID: "run-1", Emit: func(apply.Event) {}})
	var failed *apply.StepError
	if !errors.As(err, &failed) || failed.Step.Intent.Kind != plan.Prepare {
		t.Errorf("got %v, want the first steps to fail: the players take no files", err)
	}
	if len(players["192.0.2.11"].changes()) == 0 {
		t.Error("nothing was tried")
	}
}

func TestResetOfBareHostsDoesNothing(t *testing.T) {
	t.Parallel()
	e, players := open(t)
	look, err := e.LookReset(t.Context(), nil)
	if err != nil || len(look.Plan.Steps) > 0 {
		t.Fatalf("%v, %+v", err, look.Plan.Steps)
	}
	if err := e.Reset(t.Context(), nil, look, ApplyOptions{RunID: "run-1", Emit: func(apply.Event) {}}); err != nil {
		t.Error(err)
	}
	for id, p := range players {
		if done := p.changes(); len(done) > 0 {
			t.Errorf("%s was asked to %q", id, done)
		}
	}
}

func TestResetOfWhatIsNotOursIsRefused(t *testing.T) {
	t.Parallel()
	e, players := open(t)
	var wrong *ConfigError
	if _, err := e.LookReset(t.Context(), []string{"nobody"}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), `--host names "nobody"`) {
		t.Errorf("got %v", err)
	}
	players["192.0.2.21"].say("absent\t/etc/kubernetes/kubelet.conf", "exists\t/etc/kubernetes/kubelet.conf")
	if _, err := e.LookReset(t.Context(), []string{"worker"}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "unknown origin") {
		t.Errorf("got %v", err)
	}
}

func TestRunningStepsAreKnown(t *testing.T) {
	t.Parallel()
	var l Look
	running := observed.Step{RunID: "run-1", Stage: "prepare"}
	l.Result.World.Hosts = map[string]observed.Host{"1": {Step: &running}, "2": {}}
	if diff := cmp.Diff(map[string]observed.Step{"1": running}, l.RunningSteps()); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOfRunsAndPlaces(t *testing.T) {
	t.Parallel()
	e, _ := open(t)
	e.opt.Now = func() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC) }
	if id := e.NewRunID(); !strings.HasPrefix(id, "20260203T040506Z-") || id == e.NewRunID() {
		t.Errorf("run ID %q", id)
	}
	if dir, err := e.StateDir(); err != nil || filepath.Base(dir) != "demo" {
		t.Errorf("state directory %q, %v", dir, err)
	}
	if who, where, found := strings.Cut(Holder(), "@"); !found || who == "" || where == "" {
		t.Errorf("holder %q", Holder())
	}
	if e.Want().Name != "demo" || !strings.Contains(string(e.Manifest()), "name: demo") || e.Host("192.0.2.21") == nil {
		t.Error("the engine does not know its own manifest")
	}
}

func TestStateDirectoryOfTheEnvironment(t *testing.T) { // it sets the environment
	t.Setenv("KUBEONE_STATE", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "/home/me")
	for _, c := range []struct{ name, value, want string }{
		{"HOME", "/home/me", "/home/me/.local/state/kubeone"},
		{"XDG_STATE_HOME", "/xdg", "/xdg/kubeone"},
		{"KUBEONE_STATE", "/own", "/own"},
	} {
		t.Setenv(c.name, c.value)
		if got, err := DefaultStateDir(); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestAManifestThatIsGoneIsSaidToBe(t *testing.T) {
	t.Parallel()
	o := options(t, manifestText)
	o.Manifest += ".gone"
	if _, err := Open(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
