package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/hosttest"
)

func prepare() plan.Step {
	s := stepOf("prepare/node-1", "1", step.Prepare)
	s.Title = "prepare it"
	return s
}

func TestAStepRunsAsAUnitAndIsFollowed(t *testing.T) {
	t.Parallel()
	l := newLab(t, `echo "stage $1 of $KUBEONE_RUN"; echo done >&2`, prepare())
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"run-started", "step-started prepare/node-1", "step-output prepare/node-1: stage prepare of run-1",
		"step-output prepare/node-1: done",
		"step-done prepare/node-1", "run-finished",
	}
	if diff := cmp.Diff(want, l.journal.lines()); diff != "" {
		t.Error(diff)
	}
	if unit := l.Read("units"); !strings.Contains(unit, "--unit=kubeone-step.service") ||
		strings.Count(unit, "\n") != 1 {
		t.Errorf("units: %s", unit)
	}
	if l.Uploads["/var/lib/kubeone/step/node.sh"] != 0o600 {
		t.Errorf("uploads: %v", l.Uploads)
	}
	// A stage's output may contain what only root knows.
	if log, err := os.Stat(l.Path("var/lib/kubeone/step/log")); err != nil || log.Mode().Perm() != 0o600 {
		t.Errorf("the step's log: %v, %v", log, err)
	}
}

func TestAFailureSaysWhatTheHostPrintedLast(t *testing.T) {
	t.Parallel()
	after := stepOf("images/node-1", "1", step.Images, "prepare/node-1")
	l := newLab(t, `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo "line $i"; done; exit 3`, prepare(), after)
	err := l.Do(patience(t), nil)
	var failed *StepError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	if failed.Step.ID != "prepare/node-1" || len(failed.Tail) != tailLines || failed.Tail[tailLines-1] != "line 13" {
		t.Errorf("got %+v", failed)
	}
	var exit *host.ExitError
	if !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("the stage's exit status is not in %v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "node-1: prepare it: ") || !strings.HasSuffix(text, "| line 13") {
		t.Errorf("the error is %q", text)
	}
	lines := l.journal.lines()
	if diff := cmp.Diff([]string{"step-failed prepare/node-1", "step-skipped images/node-1", "run-finished"},
		lines[len(lines)-3:]); diff != "" {
		t.Error(diff)
	}
}

func TestAStepGoesOnWithoutItsConnectionAndIsFoundAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", prepare())
	wait, open := l.Gate()
	l.Scripts["1"] = "echo first; " + wait + "; echo second"
	l.journal.on = func(e Event) {
		switch {
		case e.Line == "first":
			go l.Server.DropAll()
		case e.Type == Warning:
			open()
		}
	}
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	var output []string
	for _, line := range l.journal.lines() {
		if text, ok := strings.CutPrefix(line, "step-output prepare/node-1: "); ok {
			output = append(output, text)
		}
	}
	if diff := cmp.Diff([]string{"first", "second"}, output); diff != "" {
		t.Errorf("each line once:\n%s", diff)
	}
	if n := strings.Count(l.Read("units"), "\n"); n != 1 {
		t.Errorf("%d units were started", n)
	}
}

func TestAStepThatEndedMeanwhileIsNotRunAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", stepOf("init/node-1", "1", step.Init))
	admin, _ := kubeconfig(t)
	l.Write("etc/kubernetes/admin.conf", admin, 0o600)
	wait, open := l.Gate()
	l.Scripts["1"] = "echo first; " + wait
	l.journal.on = func(e Event) {
		if e.Line == "first" {
			go l.Server.DropAll()
		}
	}
	l.pause = func(ctx context.Context, _ time.Duration) bool {
		open()
		for l.Read("var/lib/kubeone/step/result") == "" && ctx.Err() == nil {
			runtime.Gosched()
		}
		return ctx.Err() == nil
	}
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(l.Read("units"), "\n"); n != 1 {
		t.Errorf("%d units were started", n)
	}
	if l.Read("run/kubeone/secrets/token") != "" {
		t.Error("the secrets of the second attempt stay on the host")
	}
}

func TestAHostThatStaysAwayFailsItsStep(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", prepare())
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l.Now = func() time.Time { // each reading of the clock is ten seconds later
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(10 * time.Second)
		return now
	}
	l.OnRun = func(host.Cmd) error {
		return &host.Error{Class: host.Unreachable, Host: "node-1", Err: errors.New("no route")}
	}
	err := l.Do(patience(t), nil)
	if err == nil || !strings.Contains(err.Error(), "no route") {
		t.Fatalf("got %v", err)
	}
	if tries := strings.Count(strings.Join(l.journal.lines(), "\n"), "warning"); tries < 2 || tries > 9 {
		t.Errorf("%d times tried again", tries)
	}
}

func TestAnotherRunsStepIsLeftAloneAndAwaited(t *testing.T) {
	t.Parallel()
	first := newLab(t, "", prepare())
	wait, open := first.Gate()
	first.Scripts["1"] = "[ ! -f " + first.Path("begun") + " ] || exit 0; : >" + first.Path("begun") +
		"; echo begun; " + wait
	ctx, cancel := context.WithCancel(patience(t))
	first.journal.on = func(e Event) {
		if e.Line == "begun" {
			cancel() // the operator's laptop is closed
		}
	}
	if err := first.Do(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	second := &Run{
		Plan: first.Plan, Hosts: first.Hosts, Scripts: first.Scripts, RunID: "run-2", Emit: (&journal{}).emit,
		Now: time.Now, pause: first.pause,
		Lock: first.lock("run-2", true),
	}
	err := second.Do(patience(t), nil)
	if err == nil ||
		!strings.Contains(err.Error(), "another step is running there: step prepare/node-1 of run run-1 is running") {
		t.Errorf("got %v", err)
	}
	open()
	if err := Await(patience(t), first.machine); err != nil {
		t.Error(err)
	}
	if result := first.Read("var/lib/kubeone/step/result"); !strings.Contains(result, "rc=0") {
		t.Errorf("the result is %q", result)
	}
	if err := second.Do(patience(t), nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestAStepOfALostLockIsRefusedByItsHost(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo never", prepare())
	l.lock("run-2", true)
	if err := l.Do(patience(t), nil); !errors.Is(err, locks.ErrLost) {
		t.Errorf("got %v", err)
	}
	if units := l.Read("units"); units != "" {
		t.Errorf("units were started: %s", units)
	}
}

func TestAHostThatRefusesAStepKeepsNoneOfItsSecrets(t *testing.T) {
	t.Parallel()
	const others = "of another run's step"
	secrets := secretLines(map[string][]byte{"token": []byte("abcdef.0123456789abcdef"), "empty": nil})
	for name, tt := range map[string]struct {
		before  func(*lab)
		secrets []byte
		status  int
		left    string // from the secret of another run's step
	}{
		"the lock is another's": {func(l *lab) { l.lock("run-2", true) }, secrets, exitLockLost, others},
		"another step runs": {func(l *lab) {
			l.Write("var/lib/kubeone/step/current", "run=run-2\nstage=init\nstep=init/node-1\n", 0o600)
			l.Write("pid", strconv.Itoa(os.Getpid()), 0o600)
		}, secrets, exitBusy, others},
		// What was there belonged to a finished step: this run has the lock.
		"the secrets are cut off":      {func(*lab) {}, secrets[:len(secrets)-3], 1, ""},
		"a secret is not in base64":    {func(*lab) {}, []byte("token !\n.\n"), 1, ""},
		"a secret cannot be written":   {func(*lab) {}, []byte("none/token eA==\n.\n"), 1, ""},
		"no secrets, not even the end": {func(*lab) {}, nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "echo never", stepOf("init/node-1", "1", step.Init))
			tt.before(l)
			l.Write("run/kubeone/secrets/token", others, 0o600)
			l.Write("var/lib/kubeone/step/run.sh", "", 0o600)
			_, err := l.machine.Run(patience(t), l.startCmd(l.Plan.Steps[0], tt.secrets))
			var exit *host.ExitError
			if !errors.As(err, &exit) || exit.Code != tt.status {
				t.Errorf("got %v, want status %d", err, tt.status)
			}
			if got := l.Read("run/kubeone/secrets/token"); got != tt.left {
				t.Errorf("the secret on the host is %q, want %q", got, tt.left)
			}
			if units := l.Read("units"); units != "" {
				t.Errorf("units were started: %s", units)
			}
		})
	}
}

func TestAUnitThatCannotStartLeavesNoSecrets(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo never", stepOf("init/node-1", "1", step.Init))
	l.Write("bin/systemd-run", "#!/bin/sh\necho no bus >&2\nexit 1\n", 0o700)
	if err := l.Do(patience(t), nil); err == nil || !strings.Contains(err.Error(), "no bus") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(l.Path("run/kubeone/secrets")); !os.IsNotExist(err) {
		t.Errorf("the secrets are still there: %v", err)
	}
	// systemd may still have taken the job and begin it now; without its secrets the stage would do something else.
	late := append([]string{"/var/lib/kubeone/step/run.sh"}, l.startCmd(l.Plan.Steps[0], nil).Args...)
	if _, err := l.machine.Run(patience(t), host.Cmd{Script: `exec sh "$@"`, Args: late}); err != nil {
		t.Error(err)
	}
	if log := l.Read("var/lib/kubeone/step/log"); !strings.Contains(log, "was not begun") ||
		strings.Contains(log, "never") || !strings.Contains(l.Read("var/lib/kubeone/step/result"), "rc=1\n") {
		t.Errorf("its log: %s", log)
	}
}

// An attempt with a lost connection may still be starting the step when the next one arrives.
func TestTwoAttemptsStartAStepOneAfterTheOther(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cat /run/kubeone/secrets/token", stepOf("init/node-1", "1", step.Init))
	wait, open := l.Gate()
	l.Write("bin/systemd-run", strings.Replace(hosttest.SystemdRun, "\n", "\n"+wait+"\n", 1), 0o700)
	l.Write("var/lib/kubeone/step/node.sh", l.Below(l.Scripts["1"]), 0o600)
	l.Write("var/lib/kubeone/step/run.sh", l.Below(scriptText("run")), 0o600)
	secrets := secretLines(map[string][]byte{"token": []byte("whole")})
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			start := l.startCmd(l.Plan.Steps[0], secrets)
			start.Script += "\n" + scriptText("follow")
			if _, err := l.machine.Run(patience(t), start); err != nil {
				t.Error(err)
			}
		})
	}
	open()
	both.Wait()
	if n := strings.Count(l.Read("units"), "\n"); n != 1 {
		t.Errorf("%d units were started", n)
	}
	if log := l.Read("var/lib/kubeone/step/log"); log != "whole" {
		t.Errorf("the step read %q", log)
	}
}

// An attempt that was cut off on its way, unknowingly, does not block others.
func TestInterruptedUploadDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	l := newLab(t, ":", stepOf("init/node-1", "1", step.Init))
	l.Write("var/lib/kubeone/step/node.sh", "cat "+l.Path("run/kubeone/secrets/token"), 0o600)
	l.Write("var/lib/kubeone/step/run.sh", l.Below(scriptText("run")), 0o600)
	secrets := secretLines(map[string][]byte{"token": []byte("whole")})
	hangs := l.startCmd(l.Plan.Steps[0], nil)
	in, out := io.Pipe()
	hangs.Stdin = in
	var first sync.WaitGroup
	first.Go(func() { _, _ = l.machine.Run(patience(t), hangs) })
	if _, err := out.Write(secrets[:7]); err != nil {
		t.Fatal(err)
	}
	start := l.startCmd(l.Plan.Steps[0], secrets)
	start.Script += "\n" + scriptText("follow")
	if _, err := l.machine.Run(patience(t), start); err != nil || l.Read("var/lib/kubeone/step/log") != "whole" {
		t.Errorf("%v; the step read %q", err, l.Read("var/lib/kubeone/step/log"))
	}
	_ = out.Close()
	first.Wait()
}

func TestAKilledStepIsSaidToBeKilled(t *testing.T) {
	t.Parallel()
	killed := stepOf("init/node-1", "1", step.Init)
	killed.Title = "begin it"
	l := newLab(t, "ls /run/kubeone/secrets; kill -KILL $PPID", killed)
	err := l.Do(patience(t), nil)
	if err == nil || !strings.Contains(err.Error(), "begin it was killed before it ended") ||
		!strings.Contains(err.Error(), "| token") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(l.Path("run/kubeone/secrets")); !os.IsNotExist(err) {
		t.Errorf("its secrets are still there: %v", err)
	}
}

func TestTheSecretsOfAKilledStepGoOnlyWithTheLock(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", stepOf("init/node-1", "1", step.Init))
	generation := strconv.FormatInt(l.Lock.Generation("1"), 10)
	follow := func(secret string) (left string) {
		t.Helper()
		l.Write("run/kubeone/secrets/token", secret, 0o600)
		_, err := l.machine.Run(patience(t), host.Cmd{
			Script: "set -eu\ngeneration=$1\n" + locks.WithFile(StartTimeout, scriptText("follow")),
			Args:   []string{generation},
		})
		var exit *host.ExitError
		if !errors.As(err, &exit) || exit.Code != exitKilled {
			t.Errorf("got %v", err)
		}
		return l.Read("run/kubeone/secrets/token")
	}
	l.Write("var/lib/kubeone/step/log", "last words\n", 0o600)
	l.Write("var/lib/kubeone/step/flock", "", 0o600)
	if follow("of the killed step") != "" {
		t.Error("its secrets are still there")
	}
	l.lock("run-2", true)
	if follow("of another run's step") == "" {
		t.Error("the secrets of the run that has the lock are gone")
	}
}

func TestStopFinishesWhatRunsAndBeginsNothingElse(t *testing.T) {
	t.Parallel()
	l := newLab(t, "", prepare(), stepOf("images/node-1", "1", step.Images, "prepare/node-1"))
	wait, open := l.Gate()
	l.Scripts["1"] = "echo begun; " + wait
	stop := make(chan struct{})
	l.journal.on = func(e Event) {
		switch {
		case e.Line == "begun":
			close(stop)
		case e.Type == StepSkipped:
			open()
		}
	}
	if err := l.Do(patience(t), stop); !errors.Is(err, ErrStopped) {
		t.Errorf("got %v", err)
	}
	want := []string{"step-skipped images/node-1", "step-done prepare/node-1", "run-finished"}
	lines := l.journal.lines()
	if diff := cmp.Diff(want, lines[len(lines)-3:]); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsLiveAsLongAsTheirStepAndAreSeenNowhere(t *testing.T) {
	t.Parallel()
	join := stepOf("join-worker/node-1", "1", step.JoinWorker)
	l := newLab(t, "", join)
	l.Scripts["1"] = "cp /run/kubeone/secrets/token " + l.Path("seen") + "; ls -l /run/kubeone/secrets"
	admin, _ := kubeconfig(t)
	l.Want.Endpoint, l.Access = desired.Endpoint{Host: "lb.example.com", Port: 6443},
		&cluster.Access{Kubeconfig: []byte(admin)}
	const token = "abcdef.0123456789abcdef"
	l.state.tokens = map[string]joinToken{"1": {text: token, made: l.Now()}}
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	if got := l.Read("seen"); got != token {
		t.Errorf("the stage read %q, want %q", got, token)
	}
	if _, err := os.Stat(l.Path("run/kubeone/secrets")); !os.IsNotExist(err) {
		t.Errorf("the secrets are still there: %v", err)
	}
	for path, mode := range l.Uploads {
		if mode != 0o600 {
			t.Errorf("%s has mode %v", path, mode)
		}
	}
	_, secret, _ := strings.Cut(token, ".")
	everywhere := fmt.Sprint(l.journal.events, l.Args, l.Read("units"), l.Read("var/lib/kubeone/step/log"), l.Plan)
	if strings.Contains(everywhere, secret) {
		t.Errorf("the token is seen in\n%s", everywhere)
	}
}

func TestSecretsOfAFailedStepAreRemovedToo(t *testing.T) {
	t.Parallel()
	l := newLab(t, "exit 1", stepOf("init/node-1", "1", step.Init))
	if err := l.Do(patience(t), nil); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(l.Path("run/kubeone/secrets")); !os.IsNotExist(err) {
		t.Errorf("the secrets are still there: %v", err)
	}
}

func TestATokenThatAHostPrintsGoesNoFurther(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo 'join with abcdef.0123456789abcdef now'; exit 1", prepare())
	err := l.Do(patience(t), nil)
	if all := fmt.Sprint(err, l.journal.events); strings.Contains(all, "0123456789abcdef") ||
		!strings.Contains(all, "join with [token] now") {
		t.Errorf("told:\n%s", all)
	}
}

func TestANewClusterIsReachedThroughItsFirstHost(t *testing.T) {
	t.Parallel()
	l := newLab(t, ":", stepOf("init/node-1", "1", step.Init))
	l.Want = wanted("1", "2")
	l.Want.Endpoint = desired.Endpoint{Host: "lb.example.com", Port: 6443}
	admin, ca := kubeconfig(t)
	l.Write("etc/kubernetes/admin.conf", admin, 0o600)
	if _, err := l.discoveryKubeconfig(); err == nil {
		t.Error("a cluster's CA before there is a cluster")
	}
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	if via := l.Access.Via; len(via) != 1 || via[0].ID != "node-1" || via[0].Address != "127.0.0.1:6443" {
		t.Errorf("via %+v", via)
	}
	got, err := l.discoveryKubeconfig()
	if err != nil || !strings.Contains(string(got), "https://lb.example.com:6443") ||
		!strings.Contains(string(got), ca) {
		t.Errorf("%v\n%s", err, got)
	}
	if strings.Contains(string(got), "the-administrator") {
		t.Errorf("joining hosts get the administrator's credentials:\n%s", got)
	}
	l.Connect = Connectors{}
	first, err := l.apiClient()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.apiClient(); err != nil || again != first {
		t.Errorf("another client, %v", err)
	}
	l.close()
}

func TestCredentialsAreReadAgainWhenTheReadingWasCutOff(t *testing.T) {
	t.Parallel()
	l := newLab(t, ":", stepOf("init/node-1", "1", step.Init))
	l.Want = wanted("1")
	admin, _ := kubeconfig(t)
	l.Write("etc/kubernetes/admin.conf", admin, 0o600)
	l.pause = func(context.Context, time.Duration) bool { return true }
	cut := false
	l.OnRun = func(c host.Cmd) error {
		if cut || !strings.Contains(c.Script, "admin.conf") {
			return nil
		}
		cut = true
		return &host.ExitError{Host: "node-1", What: c.Name, Code: -1, Signal: "KILL"}
	}
	if err := l.Do(patience(t), nil); err != nil || l.Access == nil || !cut {
		t.Fatalf("%v, cut off: %v", err, cut)
	}
	if n := strings.Count(l.Read("units"), "\n"); n != 1 {
		t.Errorf("%d units were started", n)
	}
}

func TestNamesThatANodeMayServeUnder(t *testing.T) {
	t.Parallel()
	r := &Run{Plan: plan.Plan{Nodes: map[string]string{"1": "node-1", "3": "app-1"}}, Want: wanted("1", "2", "3")}
	r.World.API.Record = &observed.Record{Nodes: map[string]string{"9": "app-1"}}
	// What a host says about itself is no reason for a certificate.
	r.World.Hosts = map[string]observed.Host{"1": {Hostname: "own", Addresses: []string{"10.0.0.9"}}}
	want := certificates.Expected{
		"node-1": {Node: "node-1", Known: true, Names: []string{"10.0.0.1", "node-1"}},
	} // and none for a host with a refused name or with the name of another host's Node
	if diff := cmp.Diff(want, r.expectedNodes()); diff != "" {
		t.Error(diff)
	}
}

// Output is limited in line length and number of lines, and loses nonprintable characters.
func TestOutputWithoutAnEndIsNotKept(t *testing.T) {
	t.Parallel()
	told, longest := 0, 0
	w := &lineWriter{line: func(line string) {
		told, longest = told+1, max(longest, len(line))
		if strings.ContainsAny(line, "\x1b\r\x00") {
			t.Fatalf("%q is told", line)
		}
	}}
	for range 100 {
		_, _ = io.WriteString(w, strings.Repeat("x", 64<<10))
	}
	if len(w.rest) > maxLineBytes {
		t.Errorf("%d bytes of a line are kept", len(w.rest))
	}
	_, _ = io.WriteString(w, strings.Repeat("\n\x1b]0;owned\a\r\x00a", maxLines+100))
	w.flush()
	if told != maxLines || longest != maxLineBytes {
		t.Errorf("%d lines are told, the longest of %d bytes", told, longest)
	}
}
