package script

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/golden"
	"kubeone/internal/testutil/short"
)

func rendered(t *testing.T, in Input) string {
	t.Helper()
	text, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// head is what is of this host in a script: all before the stages, which every host has as they are in sh/.
func head(text string) string {
	before, _, _ := strings.Cut(text, "\n# Functions that all stages share.")
	return before
}

// Three scripts are kept whole. Of the others, what differs from the whole one of their role.
func TestScriptsOfKnownHosts(t *testing.T) {
	t.Parallel()
	const leader, worker = "leader", "worker"
	all := variants()
	for name, in := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := head(rendered(t, in)) + "\n"
			if !slices.Contains([]string{leader, worker, "everything"}, name) {
				base := all[leader]
				if in.Host.Role == desired.Worker {
					base = all[worker]
				}
				got = golden.Difference(t, head(rendered(t, base))+"\n", got)
			}
			golden.Check(t, filepath.Join("testdata", name+".golden"), got)
		})
	}
}

// One file would take the place of what another one defines.
func TestFunctionsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	text, err := stageText()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z_]+)\(\)`).FindAllStringSubmatch(text, -1) {
		if seen[match[1]] {
			t.Errorf("%s is defined twice", match[1])
		}
		seen[match[1]] = true
	}
	if len(seen) < 100 {
		t.Errorf("only %d functions were found", len(seen))
	}
}

func TestScriptsArePOSIX(t *testing.T) {
	t.Parallel()
	for name, in := range variants() {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(rendered(t, in)),
			name); err != nil {
			t.Error(err)
		}
	}
}

func TestScriptsPassShellcheck(t *testing.T) {
	t.Parallel()
	short.Tool(t, "shellcheck")
	for _, name := range []string{"everything", "worker"} { // the others differ in what is quoted only
		in := variants()[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Unused: variables and functions that only some roles need. Unreachable: functions that are
			// called by name.
			cmd := exec.CommandContext(t.Context(), "shellcheck", "--shell=sh", "--exclude=SC2034,SC2317,SC2329", "-")
			cmd.Stdin = strings.NewReader(rendered(t, in))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A script is printed, kept and compared; what is secret reaches the host another way.
func TestScriptsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	text := rendered(t, everything())
	if n := strings.Count(text, "oken: '@TOKEN@'"); n != 2 {
		t.Errorf("the join token is left to be filled in %d times, want 2: in the files for init and join", n)
	}
	for _, secret := range []string{"PRIVATE KEY", "password", "set -x"} {
		if strings.Contains(text, secret) {
			t.Errorf("the script has %q", secret)
		}
	}
}

func TestUnknownArchitectureHasNoScript(t *testing.T) {
	t.Parallel()
	in := input("cp-1")
	in.Arch = "riscv64"
	if _, err := Render(in); err == nil ||
		!strings.Contains(err.Error(), `cp-1: no artifacts for architecture "riscv64"`) {
		t.Errorf("got %v", err)
	}
}

// The stages that plans ask for are those that the script has: one for each kind of step on a host, and no other.
func TestEveryKindHasItsStage(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, k := range step.Kinds() {
		if k.OnHost() {
			want = append(want, "stage_"+strings.ReplaceAll(string(k), "-", "_"))
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(stage_\w+)\(\) {`).FindAllStringSubmatch(rendered(t, input("cp-1")),
		-1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-kinds of internal/plan/step +stages of sh/:\n%s", diff)
	}
}
