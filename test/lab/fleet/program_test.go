package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/short"
)

// repository has a program that says "old" at its first commit, whose name is returned, and "new" since.
func repository(t *testing.T) (dir, first string) {
	t.Helper()
	dir = t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) string {
		t.Helper()
		identity := []string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c",
			"commit.gpgsign=false"}
		text, err := output(exec.CommandContext(t.Context(), "git", append(identity, args...)...))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	short.Tool(t, "git")
	git("init", "--quiet")
	for _, says := range []string{"old", "new"} {
		write("go.mod", "module kubeone\n")
		write("cmd/kubeone/main.go", "package main\n\nfunc main() { print(\""+says+"\") }\n")
		git("add", ".")
		git("commit", "--quiet", "-m", says)
	}
	return dir, git("rev-parse", "HEAD~1")
}

func TestAProgramOfAnEarlierCommitIsBuilt(t *testing.T) {
	dir, first := repository(t)
	program := filepath.Join(t.TempDir(), "kubeone")
	if err := buildAt(t.Context(), dir, first, "./cmd/kubeone", program); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err != nil || string(said) != "old" {
		t.Errorf("the program says %q, %v", said, err)
	}
	present, err := os.ReadFile(filepath.Join(dir, "cmd", "kubeone", "main.go"))
	if err != nil || !strings.Contains(string(present), "new") {
		t.Errorf("the repository's files were changed: %v\n%s", err, present)
	}
}

func TestAHistoryWithoutTheCommitSaysWhatToDo(t *testing.T) {
	dir, _ := repository(t)
	const strange = "0123456789012345678901234567890123456789"
	err := buildAt(t.Context(), dir, strange, "./cmd/kubeone", filepath.Join(t.TempDir(), "kubeone"))
	if err == nil || !strings.Contains(err.Error(), strange) ||
		!strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("error %v", err)
	}
}

// Programs of before and after mirrors had to be believed make bundles of the lab.
func TestABundleIsMadeWithTheFlagsOfItsProgram(t *testing.T) {
	for help, want := range map[string]string{
		"-o, --output string  --mirror string  base URL":                  "-o b.tar",
		"-f, --file FILE\n--insecure-mirror  allow\n--trust-source  take": "-f b.tar --insecure-mirror --trust-source",
	} {
		program := filepath.Join(t.TempDir(), "kubeone")
		if err := os.WriteFile(program, []byte("#!/bin/sh\ncat <<'E'\n"+help+"\nE\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		got, err := bundleFlags(t.Context(), program, "b.tar")
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("of %q: %q, %v", help, got, err)
		}
	}
}
