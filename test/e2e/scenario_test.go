//go:build e2e

// Package e2e holds scenarios on real hosts. An operator uses kubeone, and the tests then inspect hosts and cluster
// independently of kubeone.
//
// The parts of a scenario share one lab and run in order. Each part starts from the state that the previous part left.
package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// scenario is a lab, its operator, and the state of the parts so far.
type scenario struct {
	*testing.T
	*operator.Operator
	// bare describes the hosts before any installation.
	bare map[string][]string
	// failures are the failures of this part so far.
	failures []string
}

// Error and the next three methods wrap those of testing.T, and record their messages.
func (s *scenario) Error(args ...any) {
	s.Helper()
	s.recordFailure(fmt.Sprint(args...))
	s.T.Error(args...)
}

// Errorf is like Error.
func (s *scenario) Errorf(format string, args ...any) {
	s.Helper()
	s.recordFailure(fmt.Sprintf(format, args...))
	s.T.Errorf(format, args...)
}

// Fatal is like Error.
func (s *scenario) Fatal(args ...any) {
	s.Helper()
	s.recordFailure(fmt.Sprint(args...))
	s.T.Fatal(args...)
}

// Fatalf is like Error.
func (s *scenario) Fatalf(format string, args ...any) {
	s.Helper()
	s.recordFailure(fmt.Sprintf(format, args...))
	s.T.Fatalf(format, args...)
}

func (s *scenario) recordFailure(text string) {
	const most = 2000 // bytes
	s.failures = append(s.failures, text[:min(len(text), most)])
}

// newScenario brings up a lab and removes it when the test ends.
func newScenario(t *testing.T, options fleet.Options) *scenario {
	t.Helper()
	options.Ephemeral, options.Log = true, t.Logf
	lab, err := fleet.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	o, err := operator.New(t.Context(), lab, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &scenario{T: t, Operator: o}
}

// runPart runs a part of the scenario as a subtest and reports whether it passed. It repeats the failures at the end,
// after all output of the commands.
func (s *scenario) runPart(name string, run func(*scenario)) bool {
	started := time.Now()
	sub := &scenario{Operator: s.Operator, bare: s.bare}
	ok := s.T.Run(name, func(t *testing.T) {
		sub.T = t
		run(sub)
	})
	s.Logf("%6.1f s  %s", time.Since(started).Seconds(), name)
	for _, failure := range sub.failures {
		s.Logf("%s failed: %s", name, failure)
	}
	return ok
}

// part is a part of a scenario that needs the complete cluster of the previous part.
type part struct {
	name string
	run  func(*scenario)
}

func (s *scenario) runParts(parts ...part) {
	s.Helper()
	for _, part := range parts {
		if !s.runPart(part.name, part.run) {
			s.Fatalf("each part needs the whole cluster that the one before it left: this was the first to fail: %s",
				part.name)
		}
	}
}

// must ends the part when an error occurs in the test itself.
func (s *scenario) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// runCommand runs a kubeone command. It ends the part on another exit status, and fails it when a text is missing in
// the output. A command that should find the cluster healthy is repeated for a minute: on a busy machine a component,
// or a member of etcd, may answer late.
func (s *scenario) runCommand(status int, args []string, texts ...string) operator.Result {
	s.Helper()
	r := s.Run(s.Context(), args...)
	if status == 0 && r.Status != 0 && slices.Contains([]string{"plan", "status"}, args[0]) {
		s.Logf("not well at this moment:\n%s", r)
		s.eventually(args[0]+" to find the cluster well", time.Minute, func(ctx context.Context) error {
			if r = s.Run(ctx, args...); r.Status != 0 {
				return fmt.Errorf("%s", r)
			}
			return nil
		})
	}
	s.checkResult(r, status, texts...)
	return r
}

// checkResult checks the result of a command. Another exit status ends the part; a missing text fails it.
func (s *scenario) checkResult(r operator.Result, status int, texts ...string) {
	s.Helper()
	if r.Status != status {
		s.Fatalf("want exit status %d\n%s", status, r)
	}
	for _, text := range texts {
		if !strings.Contains(r.Text(), text) {
			s.Errorf("want %q to be printed\n%s", text, r)
		}
	}
	s.Logf("%5.1f s  kubeone %s (exit status %d)", r.Took.Seconds(), r.Args[0], r.Status)
}

// Run hides testing.T's method of the same name: a scenario runs commands.
func (s *scenario) Run(ctx context.Context, args ...string) operator.Result {
	return s.Operator.Run(ctx, args...)
}

// nothingToDo checks that kubeone finds nothing to do.
func (s *scenario) nothingToDo() {
	s.Helper()
	s.runCommand(0, []string{"plan"}, "No changes")
}

// eventually waits for a condition.
func (s *scenario) eventually(what string, limit time.Duration, holds func(context.Context) error) {
	s.Helper()
	if err := operator.Until(s.Context(), what, limit, holds); err != nil {
		s.Fatal(err)
	}
}

// snapshotAll describes all hosts that belong to clusters.
func (s *scenario) snapshotAll() map[string][]string {
	s.Helper()
	return s.snapshotOf(s.Machines()...)
}

// snapshotOf describes the given hosts.
func (s *scenario) snapshotOf(hosts ...*fleet.Host) map[string][]string {
	s.Helper()
	all, err := operator.Snapshot(s.Context(), hosts)
	s.must(err)
	return all
}

// checkUnchanged checks that two descriptions of hosts are equal.
func (s *scenario) checkUnchanged(before, after map[string][]string) {
	s.Helper()
	for name := range before {
		if gone, come := diffLines(before[name], after[name]); len(gone)+len(come) > 0 {
			s.Errorf("%s has changed\ngone:%s\nnew:%s", name, joinLines(gone), joinLines(come))
		}
	}
}

// diffLines returns the lines that are in only one of two descriptions.
func diffLines(before, after []string) (gone, come []string) {
	missing := func(from, in []string) []string {
		return slices.DeleteFunc(slices.Clone(from), func(line string) bool { return slices.Contains(in, line) })
	}
	return missing(before, after), missing(after, before)
}

// joinLines returns lines as a list, shortened if there are many.
func joinLines(lines []string) string {
	const most = 30
	var text strings.Builder
	for n, line := range lines {
		if n == most {
			fmt.Fprintf(&text, "\n  and %d more", len(lines)-most)
			break
		}
		text.WriteString("\n  " + line)
	}
	return text.String()
}

// checkEqual compares two values of any kind.
func (s *scenario) checkEqual(what string, want, got any) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// hostnamesOf returns the names of hosts, in their order.
func hostnamesOf(hosts []*fleet.Host) []string {
	var names []string
	for _, host := range hosts {
		names = append(names, host.Hostname)
	}
	return names
}
