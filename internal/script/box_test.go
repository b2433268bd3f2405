package script

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// box is a directory that stands for a host's file system, and a PATH with nothing on it but the tools that every host
// has and what a test puts there: a script that is run in it reaches nothing of the machine that runs the test.
type box struct {
	t      *testing.T
	root   string
	script string // the functions and variables of a rendered script, its paths below root
}

// hostPath is an absolute path of a host, where a shell takes it for one.
var hostPath = regexp.MustCompile(`(^|[\s"'=:(<>,])/(etc|opt|var|run|usr/local|proc|sys)/`)

// tools are those that the stages expect of every host.
func everyHostsTools() []string {
	return []string{
		"base64", "cat", "chmod", "cmp", "cp", "date", "env", "grep", "ln", "mkdir", "mktemp", "mv", "readlink", "rm",
		"rmdir", "sed", "sh", "sha256sum", "sleep",
		"sort", "stat", "sync", "tar", "timeout", "touch", "tr", "wc", "gzip", "find",
	}
}

// newBox makes a box for the script of the input, without running anything.
func newBox(t *testing.T, in Input) *box {
	t.Helper()
	if testing.Short() {
		t.Skip("stages run in shells without -short")
	}
	b := &box{t: t, root: t.TempDir()}
	text, _, found := strings.Cut(rendered(t, in), "\n# Runs the stage named by the script's only argument;")
	if !found {
		t.Fatal("the script's last part is not where it was")
	}
	text = regexp.MustCompile(`(?m)^export PATH=.*$`).ReplaceAllString(text, "export PATH='"+b.path("bin")+"'")
	for hostPath.MatchString(text) {
		text = hostPath.ReplaceAllString(text, "${1}"+b.root+"/${2}/")
	}
	b.script = text + "\nstored_by() { :; }\n" // there is no etcd; encryption_test.go has its own
	for _, tool := range everyHostsTools() {
		at, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		b.mkdir("bin")
		if err := os.Symlink(at, b.path("bin/"+tool)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *box) path(name string) string { return filepath.Join(b.root, name) }

func (b *box) mkdir(name string) {
	b.t.Helper()
	if err := os.MkdirAll(b.path(name), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// write makes a file.
func (b *box) write(name, content string) {
	b.t.Helper()
	b.mkdir(filepath.Dir(name))
	if err := os.WriteFile(b.path(name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// read is a file's content, "" where there is none.
func (b *box) read(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(b.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	return string(content)
}

// command puts a stand-in on the PATH: a shell script that is noted in the list of calls before its body runs.
func (b *box) command(name, body string) {
	b.t.Helper()
	// What is there may be a link to this machine's own command.
	if err := os.Remove(b.path("bin/" + name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	b.write("bin/"+name, "#!"+b.path("bin/sh")+"\nprintf '%s\\n' \""+name+" $*\" >>'"+b.path("calls")+"'\n"+body+"\n")
	if err := os.Chmod(b.path("bin/"+name), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// calls are the stand-ins that were called since the last time, with their arguments, the root left out.
func (b *box) calls() []string {
	b.t.Helper()
	text := strings.ReplaceAll(b.read("calls"), b.root, "")
	_ = os.Remove(b.path("calls"))
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// ran is what a piece of shell left behind.
type ran struct {
	out, err string
	code     int
}

const (
	runTimeout = 2 * time.Minute // for a piece of shell, which takes a second at most unless it waits in vain
	// leftoverDelay is for how long processes that a shell has left may keep its output open. They are killed after it.
	leftoverDelay = 10 * time.Second
)

// run runs a piece of shell after the script's functions and variables.
func (b *box) run(body string) ran {
	b.t.Helper()
	if hostPath.MatchString(body) {
		b.t.Fatalf("this would be done to the machine that tests, where @ROOT@ is meant:\n%s", body)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-s")
	cmd.Stdin = strings.NewReader(b.script + "\nPOLL=0.01\n" + strings.ReplaceAll(body, "@ROOT@", b.root) + "\n")
	cmd.Dir, cmd.Env = b.root, []string{"HOME=" + b.root}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, leftoverDelay
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	err := cmd.Wait()
	_ = cmd.Cancel() // what it has left
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	strip := func(s string) string { return strings.ReplaceAll(strings.TrimSuffix(s, "\n"), b.root, "") }
	return ran{strip(stdout.String()), strip(stderr.String()), cmd.ProcessState.ExitCode()}
}

// must runs a piece of shell that has to succeed and returns what it printed.
func (b *box) must(body string) string {
	b.t.Helper()
	r := b.run(body)
	if r.code != 0 {
		b.t.Fatalf("%s\nexit status %d\n%s\n%s", body, r.code, r.out, r.err)
	}
	return r.out
}

// fails runs a piece of shell that has to fail and say so.
func (b *box) fails(body, says string) {
	b.t.Helper()
	if r := b.run(body); r.code == 0 || !strings.Contains(r.err, says) {
		b.t.Errorf("%s\nexit status %d, printed %q and %q, want a failure that says %q", body, r.code, r.out, r.err,
			says)
	}
}

// tree returns every file below a directory with its content, mode and age. Equal trees mean that nothing was written.
func (b *box) tree(names ...string) map[string]string {
	b.t.Helper()
	out := map[string]string{}
	for _, name := range names {
		err := filepath.WalkDir(b.path(name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			content, _ := os.ReadFile(path)
			out[strings.TrimPrefix(path, b.root)] = info.Mode().String() + " " + info.ModTime().String() + " " +
				string(content)
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}
