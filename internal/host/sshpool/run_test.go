package sshpool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

func TestRunGivesOutputAndArguments(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	args := []string{"a b", "", "it's", `$HOME "x" \n`, "*", "-n", "line\nbreak"}
	got := runScript(t, h, `printf '<%s>' "$@"; echo warn >&2`, args...)
	if diff := cmp.Diff("<"+strings.Join(args, "><")+">", got); diff != "" {
		t.Error(diff)
	}
}

func TestRunKeepsTheScriptOutOfTheCommandLine(t *testing.T) {
	t.Parallel()
	commands := make(chan string, 1)
	s := sshtest.Start(t, sshtest.Options{Handler: func(s *sshtest.Session) int {
		commands <- s.Command
		return sshtest.Shell()(s)
	}})
	runScript(t, newPool(t, sshpool.Options{}).Host(targetOf(t, s)), "echo s3cret >/dev/null")
	if c := <-commands; strings.Contains(c, "s3cret") {
		t.Errorf("the script is visible in process lists: %s", c)
	}
}

func TestScriptDoesNotEatItsOwnText(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	if got := runScript(t, h, "cat\necho still here\n"); got != "still here\n" {
		t.Errorf("got %q", got)
	}
}

func TestRunPassesStdin(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	in := strings.Repeat("0123456789abcdef\n", 50_000)
	var out bytes.Buffer
	_, err := h.Run(testContext(t), host.Cmd{Script: "cat", Stdin: strings.NewReader(in), Stdout: &out})
	must(t, err)
	if out.String() != in {
		t.Errorf("got %d bytes, want %d", out.Len(), len(in))
	}
}

func TestRunDoesNotWaitForUnreadStdin(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	_, err := shellHost(t).Run(testContext(t), host.Cmd{Script: "exit 0", Stdin: r})
	must(t, err)
}

func TestFailedCommandIsAnExitErrorWithTheEndOfStderr(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	res, err := h.Run(testContext(t),
		host.Cmd{Name: "install the kubelet", Script: "echo partial; echo no space left >&2; exit 3"})
	var exit *host.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("got %v", err)
	}
	wantClass(t, err, host.Exit)
	want := h.Name() + ": install the kubelet: exit status 3: no space left"
	if exit.Code != 3 || res.ExitCode != 3 || err.Error() != want || string(res.Stdout) != "partial\n" {
		t.Errorf("got %v, result %+v", err, res)
	}
}

func TestErrexitAndSignalsReachTheCaller(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	for script, want := range map[string]int{"set -eu; false; echo on": 1, "set -u; echo $nope": 0, "kill -9 $$": 137} {
		res, err := h.Run(testContext(t), host.Cmd{Script: script})
		wantClass(t, err, host.Exit)
		if want != 0 && res.ExitCode != want {
			t.Errorf("%q: exit code %d, want %d", script, res.ExitCode, want)
		}
	}
}

func TestLongScripts(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	script := strings.Repeat("# ütf-8 and filler to be much longer than a pipe holds\n", 20_000) + "echo end"
	if got := runScript(t, h, script); got != "end\n" {
		t.Errorf("got %q", got)
	}
}

func TestCommandDeadline(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	_, err := h.Run(testContext(t), host.Cmd{Script: "exec sleep 60", Timeout: 20 * time.Millisecond})
	wantClass(t, err, host.Timeout)
	if !errors.Is(err, host.ErrTimeout) {
		t.Errorf("not ErrTimeout: %v", err)
	}
}

func TestCancelEndsTheRemoteCommand(t *testing.T) {
	t.Parallel()
	ended := make(chan int, 1)
	s := sshtest.Start(t, sshtest.Options{Handler: func(s *sshtest.Session) int {
		code := sshtest.Shell()(s)
		ended <- code
		return code
	}})
	h := newPool(t, sshpool.Options{}).Host(targetOf(t, s))
	ctx, cancel := context.WithCancel(testContext(t))
	started := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	_, err := h.Run(ctx, host.Cmd{Script: "echo started; exec sleep 60", Stdout: started})
	wantClass(t, err, host.Canceled)
	if code := <-ended; code != 128+15 {
		t.Errorf("the remote command ended with %d, want TERM", code)
	}
	if got := runScript(t, h, "echo ok"); got != "ok\n" { // the connection still works
		t.Errorf("got %q", got)
	}
}

func TestMoreOutputThanAResultHolds(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Handler: func(s *sshtest.Session) int {
		block := make([]byte, 1<<20)
		for s.Context().Err() == nil {
			if _, err := s.Stdout.Write(block); err != nil {
				return 1
			}
		}
		return 1
	}})
	_, err := newPool(t, sshpool.Options{}).Host(targetOf(t, s)).Run(testContext(t), host.Cmd{Script: ":"})
	if !errors.Is(err, host.ErrOutput) {
		t.Errorf("got %v", err)
	}
}

func TestCommandsShareOneConnectionAndAFewSessions(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, most := 0, 0
	full := make(chan struct{})
	s := sshtest.Start(t, sshtest.Options{Handler: func(*sshtest.Session) int {
		mu.Lock()
		if running++; running > most {
			if most = running; most == 4 {
				close(full)
			}
		}
		mu.Unlock()
		<-full
		mu.Lock()
		running--
		mu.Unlock()
		return 0
	}})
	p := newPool(t, sshpool.Options{MaxSessions: 4})
	target := targetOf(t, s)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := p.Host(target).Run(testContext(t), host.Cmd{Script: ":"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	want := sshpool.HostStats{Dials: 1, Connections: 1, Commands: 20}
	if diff := cmp.Diff(sshpool.Stats{HostStats: want, Hosts: map[string]sshpool.HostStats{"node-1": want}},
		p.Stats()); diff != "" {
		t.Error(diff)
	}
	if most != 4 || s.Connections() != 1 {
		t.Errorf("%d commands at one time on %d connections", most, s.Connections())
	}
}

func TestTruncatedScriptIsNotRun(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Handler: func(s *sshtest.Session) int {
		short := *s
		short.Stdin = io.LimitReader(s.Stdin, 8)
		return sshtest.Shell()(&short)
	}})
	res, err := newPool(t, sshpool.Options{}).Host(targetOf(t, s)).Run(testContext(t),
		host.Cmd{Script: "echo a\necho b\necho c"})
	wantClass(t, err, host.Exit)
	if len(res.Stdout) > 0 || res.ExitCode != 74 {
		t.Errorf("ran part of a script: %+v", res)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestClosedPool(t *testing.T) {
	t.Parallel()
	p := newPool(t, sshpool.Options{})
	h := p.Host(targetOf(t, sshtest.Start(t, sshtest.Options{})))
	runScript(t, h, ":")
	must(t, p.Close())
	_, err := h.Run(testContext(t), host.Cmd{Script: ":"})
	if !errors.Is(err, host.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if got := fmt.Sprint(host.ClassOf(nil), host.Transient(nil)); got != "other false" {
		t.Error(got)
	}
}
