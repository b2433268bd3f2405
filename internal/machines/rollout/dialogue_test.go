package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestDialogues runs the dialogues in testdata. To rewrite them, run `go test ./internal/machines/rollout -rewrite`.
// Commands:
//
//	deployment|set replicas=N [template=T] [metadata=M] [surge=N] [unavailable=N] [strategy=S] [paused=yes|no] …
//	  creates the deployment (or a set without one), or changes the given fields
//	change FROM TO HOW   sets how the provider changes one template to another
//	plan                 plans once and makes the writes
//	step                 advances every machine by one step
//	run                  plans and steps until nothing changes
//	break|stick|free|delete|delete-first NAME…   does that to machines
//	wait DURATION        advances the clock
//	show, status         prints the objects, or the status
func TestDialogues(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return w.command(t, d)
		})
	})
}

func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "deployment", "set":
		w.configure(t, d)
	case "change":
		keys := d.CmdArgs
		how := strings.ReplaceAll(keys[2].Key, "-", " ")
		w.changes[[2]string{keys[0].Key, keys[1].Key}] = Change(strings.TrimPrefix(how, "replace"))
	case "plan":
		return lines(w.plan())
	case "step":
		return lines(w.step())
	case "run":
		return w.run()
	case "wait":
		wait, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		w.Now = w.Now.Add(wait)
	case "show":
		return w.String()
	case "status":
		plan := PlanFamily(w.look())
		text := fmt.Sprintf("%+v\n", plan.Status)
		if !plan.Wake.IsZero() {
			text += fmt.Sprintf("asked again in %v\n", plan.Wake.Sub(w.Now))
		}
		return text
	default:
		for _, arg := range d.CmdArgs {
			w.touch(t, d.Cmd, arg.Key)
		}
	}
	return ""
}

// configure creates or changes the deployment, or the set without one.
func (w *world) configure(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	template := Template{}
	switch {
	case d.Cmd == "deployment" && w.Rollout == nil:
		w.Rollout = &Rollout{Strategy: RollingUpdate, MaxSurge: 1, RevisionHistoryLimit: 1}
	case d.Cmd == "set" && len(w.Sets) == 0:
		w.Sets = []Set{{Name: w.Name, Created: w.Now}}
	}
	if w.Rollout != nil {
		template = w.Rollout.Template
		var strategy, deadline, paused string
		d.MaybeScanArgs(t, "surge", &w.Rollout.MaxSurge)
		d.MaybeScanArgs(t, "unavailable", &w.Rollout.MaxUnavailable)
		d.MaybeScanArgs(t, "history", &w.Rollout.RevisionHistoryLimit)
		d.MaybeScanArgs(t, "rollback", &w.Rollout.RollbackTo)
		if d.MaybeScanArgs(t, "strategy", &strategy) {
			w.Rollout.Strategy = Strategy(strategy)
		}
		if d.MaybeScanArgs(t, "paused", &paused) {
			w.Rollout.Paused = paused == "yes"
		}
		if d.MaybeScanArgs(t, "deadline", &deadline) {
			w.Rollout.ProgressDeadline = duration(t, deadline)
		}
	}
	var policy, ready string
	d.MaybeScanArgs(t, "replicas", &w.Replicas)
	d.MaybeScanArgs(t, "unhealthy", &w.MaxUnhealthy)
	d.MaybeScanArgs(t, "template", &template.Machine)
	d.MaybeScanArgs(t, "metadata", &template.Metadata)
	if d.MaybeScanArgs(t, "policy", &policy) {
		w.DeletePolicy = DeletePolicy(policy)
	}
	if d.MaybeScanArgs(t, "min-ready", &ready) {
		w.MinReady = duration(t, ready)
	}
	if w.Rollout != nil {
		w.Rollout.Template = template
	} else {
		w.Sets[0].Template = template
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// touch does something to a machine.
func (w *world) touch(t *testing.T, what, name string) {
	t.Helper()
	m := w.machine(name)
	if m == nil {
		t.Fatalf("no machine %s", name)
	}
	switch what {
	case "break":
		m.Unhealthy, m.ReadySince = true, time.Time{}
	case "lose":
		m.Lost, m.ReadySince = true, time.Time{}
	case "find":
		m.Lost, m.ReadySince = false, w.Now
	case "stick":
		w.stuck[name] = true
	case "free":
		delete(w.stuck, name)
	case "delete":
		m.Deleting = true
	case "delete-first":
		m.DeleteFirst = true
	default:
		t.Fatalf("no command %q", what)
	}
}

// plan makes the planned writes and returns them as text. Each write takes a second.
func (w *world) plan() []string {
	var said []string
	for _, write := range PlanFamily(w.look()).Writes {
		said = append(said, write.String())
		w.do(write)
		w.Now = w.Now.Add(time.Second)
	}
	return said
}

// run plans and steps until nothing changes.
func (w *world) run() string {
	var b strings.Builder
	for range 100 {
		writes, events := w.plan(), w.step()
		if len(writes)+len(events) == 0 {
			return b.String()
		}
		for _, write := range writes {
			b.WriteString(write + "\n")
		}
		if len(events) > 0 {
			fmt.Fprintf(&b, "  %s\n", strings.Join(events, ", "))
		}
	}
	return b.String() + "and so on\n"
}

func lines(of []string) string {
	if len(of) == 0 {
		return "nothing\n"
	}
	return strings.Join(slices.Clone(of), "\n") + "\n"
}
