package sshpool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

// sudoHost returns a host where sudo is a script, for a user other than root, and the file in which that script logs
// its calls.
func sudoHost(t *testing.T, sudo string) (h host.Host, log string) {
	t.Helper()
	bin := t.TempDir()
	log = filepath.Join(bin, "log")
	must(t, os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\necho call >>"+log+"\n"+sudo), 0o700))
	s := sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell("PATH=" + bin + ":" + os.Getenv("PATH"))})
	target := targetOf(t, s)
	target.User = "deploy"
	return newPool(t, sshpool.Options{}).Host(target), log
}

func TestSudo(t *testing.T) {
	t.Parallel()
	h, log := sudoHost(t, `[ "$1" = -n ] && shift && VIA_SUDO=yes exec "$@"`)
	for range 3 {
		if got := runScript(t, h, `echo "$VIA_SUDO $1"`, "it's"); got != "yes it's\n" {
			t.Errorf("got %q", got)
		}
	}
	calls, err := os.ReadFile(log)
	must(t, err)
	if n := strings.Count(string(calls), "call"); n != 4 { // the first command checks
		t.Errorf("sudo was called %d times", n)
	}
}

func TestNoSudo(t *testing.T) {
	t.Parallel()
	h, _ := sudoHost(t, `echo "sudo: a password is required" >&2; exit 1`)
	res, err := h.Run(testContext(t), host.Cmd{Script: "echo never"})
	wantClass(t, err, host.Sudo)
	var no *host.NoSudoError
	if !errors.As(err, &no) || !errors.Is(err, host.ErrNoSudo) || no.User != "deploy" || len(res.Stdout) > 0 {
		t.Fatalf("got %v, %+v", err, res)
	}
	for _, w := range []string{"a password is required", "deploy ALL=(ALL) NOPASSWD: ALL", "/etc/sudoers.d"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

func TestScriptThatExitsLikeTheSudoCheckIsNotMistaken(t *testing.T) {
	t.Parallel()
	h, _ := sudoHost(t, `shift; exec "$@"`)
	_, err := h.Run(testContext(t), host.Cmd{Script: "exit 213"})
	wantClass(t, err, host.Exit)
}

func TestRootNeedsNoSudo(t *testing.T) {
	t.Parallel()
	if got := runScript(t, shellHost(t), "echo root"); got != "root\n" {
		t.Error(got)
	}
}
