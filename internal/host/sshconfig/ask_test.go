package sshconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/host"
)

// fakeSSH is a program in place of ssh, with the files that it is asked about.
type fakeSSH struct {
	home, system, calls string
	options             Options
}

// newFakeSSH creates a program that records its arguments and prints the output of the shell script.
func newFakeSSH(t *testing.T, config, script string) fakeSSH {
	t.Helper()
	f := fakeSSH{home: t.TempDir(), system: t.TempDir()}
	f.calls = filepath.Join(f.home, "calls")
	program := filepath.Join(f.home, "ssh")
	for path, text := range map[string]string{
		program:                              "#!/bin/sh\necho \"$*\" >>" + f.calls + "\n" + script + "\n",
		filepath.Join(f.home, ".ssh/config"): config,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f.options = Options{
		SSH: program, HomeDir: f.home, SystemDir: f.system, Getenv: func(string) string { return "" },
		Warn: func(string) {},
	}
	return f
}

// called returns the arguments of each run.
func (f fakeSSH) called(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(f.calls)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:strings.Count(string(text), "\n")]
}

func TestOneQuestionIsEnoughForAConfigurationThatTellsNoHostsApart(t *testing.T) {
	t.Parallel()
	var hosts []string
	for n := range 20 {
		hosts = append(hosts, fmt.Sprint("cp-", n))
	}
	for config, want := range map[string]int{"Host *\n  User me\n": 1 + 1, "Host cp-1\n  User me\n": 1 + 20} {
		f := newFakeSSH(t, config, "echo user me; echo hostname fake")
		r := New(f.options)
		r.Prefetch(hosts)
		for _, h := range hosts {
			got, err := r.Resolve(host.Target{Address: h})
			if err != nil || got.User != "me" || want == 2 && got.Address != h {
				t.Errorf("%q: %s is %s, %v", config, h, got.Addr(), err)
			}
		}
		if got := f.called(t); len(got) != want {
			t.Errorf("%q: %d runs of ssh, want %d: %q", config, len(got), want, got)
		}
	}
}

func TestWithoutAConfigurationNothingIsRun(t *testing.T) {
	t.Parallel()
	f := newFakeSSH(t, "", "exit 1")
	ignoring, without := f.options, f.options
	ignoring.Ignore, without.HomeDir = true, t.TempDir()
	for _, o := range []Options{ignoring, without} {
		got, err := New(o).Resolve(host.Target{Address: "cp-1"})
		if err != nil || got.Addr() != "root@cp-1:22" {
			t.Errorf("%s, %v", got.Addr(), err)
		}
	}
	if got := f.called(t); len(got) != 0 {
		t.Errorf("ran %q", got)
	}
}

func TestAnAddressIsNeverAnOption(t *testing.T) {
	t.Parallel()
	f := newFakeSSH(t, "Host x\n", "echo user me")
	for _, address := range []string{"-oProxyCommand=x", "$(x)", "a;b", "a'b"} {
		if _, err := New(f.options).Resolve(host.Target{Address: address}); err == nil {
			t.Errorf("%q: no error", address)
		}
	}
	if _, err := New(f.options).Resolve(host.Target{Address: "cp-1"}); err != nil {
		t.Error(err)
	}
	calls := f.called(t)
	for _, call := range calls {
		if !strings.HasSuffix(call, " -- localhost") && !strings.HasSuffix(call, " -- cp-1") {
			t.Errorf("ran ssh %s", call)
		}
	}
	if len(calls) < 2 {
		t.Errorf("ran %q", calls)
	}
}

func TestErrorsOfSSHAreQuoted(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		"echo \"$4: line 3: Bad thing\" >&2; exit 255":                     "status 255: line 3: Bad thing",
		"head -c 2000000 /dev/zero":                                        "more than 1048576 bytes",
		"[ \"$4\" = none ] || echo port nope":                              `"nope" is not a port`,
		"[ \"$4\" = none ] || echo proxycommand nc":                        "ProxyCommand is not supported",
		"[ \"$4\" = none ] || echo ciphers none-of-these":                  "none of none-of-these is",
		"[ \"$4\" = none ] || echo userknownhostsfile x":                   "x is not an absolute path",
		"[ \"$4\" = none ] || echo stricthostkeychecking perhaps":          `"perhaps" is not one of`,
		"[ \"$4\" = none ] || { echo hostname a; echo proxyjump b:nope; }": "ProxyJump",
	} {
		_, err := New(newFakeSSH(t, "Host x\n", script).options).Resolve(host.Target{Address: "cp-1"})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q in it", script, err, says)
		}
	}
}

func TestConfigurationsThatTellHostsApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"all": "Host *\n  User me\n", "some": "Host cp-1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]bool{
		"": true, "# Host a %h\n\nUser me\n": true, "Host *\n  HashKnownHosts yes\n": true,
		"Include " + dir + "/all\n": true, "Include " + dir + "/nothing-*\n": true,
		"Host a\n": false, "host * !a\n": false, "Host=a\n": false, "\"Host\" a\n": false, "Match all\n": false,
		"Include some\n": false, "Include " + dir + "/*\n": false, "Include ~/x\n": false, "IdentityFile ~/%h\n": false,
		"Host *\n  HostName a\n": false,
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := isSameForAll([]string{path}, 0); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
