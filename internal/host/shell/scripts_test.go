package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"kubeone/internal/testutil/short"
)

// FuzzQuote compares quoting with a real shell.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "a b", "it's", `"$HOME" \ *`, "-n", "\n", "~", "ü", "a;b&c|d", "!x", "#"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "\x00") {
			return // no program argument can contain it
		}
		out, err := exec.Command("sh", "-c", "printf %s "+quoteWord(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q came out as %q (%v)", s, out, err)
		}
	})
}

// TestCommandsRunInTheShellOfAnyUser runs commands in the shells that users log in with.
func TestCommandsRunInTheShellOfAnyUser(t *testing.T) {
	t.Parallel()
	shells := []string{"sh"}
	if !testing.Short() {
		shells = append(shells, "bash", "dash", "fish", "tcsh")
	}
	args := []string{"plain", "it's", `back\slash \\ two`, "bang! $HOME `x` #", ""}
	for _, shell := range shells {
		script, n := Wire(`printf '%s|' "$@"`, nil)
		cmd := exec.Command(shell, "-c", CommandLine(Argv(AsIs, n, args)))
		cmd.Stdin = script
		out, err := cmd.CombinedOutput()
		if want := strings.Join(args, "|") + "|"; err != nil || string(out) != want {
			t.Errorf("%s printed %q, want %q (%v); make unit installs the shells", shell, out, want, err)
		}
	}
	for name, script := range scripts() {
		if strings.Contains(script, "\n") && name != "upload" {
			t.Errorf("%s has more than one line, which csh does not take:\n%s", name, script)
		}
	}
}

func scripts() map[string]string {
	return map[string]string{"bootstrap": fmt.Sprintf(bootstrap, 10), "sudo check": sudoCheck, "upload": uploadScript}
}

func TestScriptsArePOSIX(t *testing.T) {
	t.Parallel()
	for name, script := range scripts() {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script),
			name); err != nil {
			t.Error(err)
		}
	}
}

func TestScriptsPassShellcheck(t *testing.T) {
	t.Parallel()
	path := short.Tool(t, "shellcheck")
	for name, script := range scripts() {
		cmd := exec.Command(path, "-s", "sh", "-")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestScriptsInOtherShells runs the hosts' scripts in the shells of hosts.
func TestScriptsInOtherShells(t *testing.T) {
	t.Parallel()
	for _, shell := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			short.Tool(t, shell[0])
			sh := func(script, stdin string, args ...string) (string, error) {
				in, n := Wire(script, strings.NewReader(stdin))
				words := append(slices.Clone(shell), Argv(AsIs, n, args)[1:]...)
				cmd := exec.Command(words[0], words[1:]...)
				cmd.Stdin = in
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := sh("printf '%s|' \"$@\"; cat", "input", "a b", "it's"); err != nil ||
				out != "a b|it's|input" {
				t.Errorf("got %q, %v", out, err)
			}
			path := filepath.Join(t.TempDir(), "f")
			if out, err := sh(uploadScript, "content", path, "0640", "7", ""); err != nil {
				t.Errorf("upload: %s, %v", out, err)
			}
			if out, err := sh(uploadScript, "cont", path, "0600", "7", ""); err == nil ||
				!strings.Contains(out, "4 bytes of 7") {
				t.Errorf("short upload: %s, %v", out, err)
			}
			// A new directory is as private as its file.
			for mode, want := range map[string]os.FileMode{"0600": 0o700, "0644": 0o755} {
				dir := filepath.Join(filepath.Dir(path), "new"+mode)
				out, err := sh(uploadScript, "content", dir+"/f", mode, "7", "")
				if info, wrong := os.Stat(dir); wrong != nil || info.Mode().Perm() != want {
					t.Errorf("upload of %s: %s, %v; the directory is %v, %v", mode, out, err, info, wrong)
				}
			}
			got, err := os.ReadFile(path)
			info, err2 := os.Stat(path)
			if err != nil || err2 != nil || string(got) != "content" || info.Mode() != 0o640 {
				t.Errorf("got %q, %v, %v", got, err, err2)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
