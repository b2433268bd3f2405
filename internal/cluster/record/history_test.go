package record

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runsOf writes a record, reads it again, and returns its runs and size.
func runsOf(t *testing.T, r *Record) ([]Run, int) {
	t.Helper()
	data, err := encodeRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	again := Decode(data)
	if len(again.Unreadable) > 0 {
		t.Fatal(again.Unreadable)
	}
	return again.History, len(data["history"])
}

func TestHistoryKeepsTheLastFiftyRunsAndFitsIntoAConfigMap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ runs, steps, kept, detailed int }{
		{0, 0, 0, 0}, {1, 5000, 1, 0}, {49, 1, 49, 49}, {50, 1, 50, 50}, {60, 1, 50, 50}, {60, 60, 50, 50},
		{60, 400, 50, 8},
	} {
		r := &Record{}
		for i := range c.runs {
			run := Run{ID: fmt.Sprint("run-", i), Result: Done}
			for n := range c.steps {
				run.Steps = append(run.Steps, Step{
					ID:      fmt.Sprint("join-worker/worker-", n),
					Result:  Done,
					Began:   1234.5,
					Seconds: 12.345,
				})
			}
			r.AddRun(run)
		}
		got, bytes := runsOf(t, r)
		detailed := 0
		for i, run := range got {
			if len(run.Steps) > 0 {
				detailed++
			} else if detailed > 0 {
				t.Errorf("%+v: run %d has no steps, and an older one has", c, i)
			}
		}
		if len(got) != c.kept || detailed != c.detailed || bytes > maxHistoryBytes {
			t.Errorf("%+v: kept %d runs, %d of them with steps, in %d bytes", c, len(got), detailed, bytes)
		}
		if len(got) > 0 && got[len(got)-1].ID != fmt.Sprint("run-", c.runs-1) {
			t.Errorf("%+v: the last run is %s", c, got[len(got)-1].ID)
		}
	}
}

// A large manifest leaves less room for the history, and the whole record still fits into a ConfigMap.
func TestARecordWithALargeManifestFitsIntoAConfigMap(t *testing.T) {
	t.Parallel()
	r := &Record{Manifest: strings.Repeat("x", maxConfigMapBytes-2*minHistoryBytes)}
	if err := CheckSize(r.Manifest, nil); err != nil {
		t.Fatal(err)
	}
	run := Run{ID: "run", Result: Done}
	for n := range 1000 {
		run.Steps = append(run.Steps, Step{ID: fmt.Sprint("join-worker/worker-", n), Result: Done})
	}
	for range maxHistoryRuns {
		r.AddRun(run)
	}
	data, err := encodeRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for key, text := range data {
		size += len(key) + len(text)
	}
	if size > maxConfigMapBytes {
		t.Errorf("%d bytes", size)
	}
	r.Manifest += "x"
	if CheckSize(r.Manifest, map[string]string{"192.0.2.1": "w-1"}) == nil {
		t.Error("a larger one is not refused")
	}
}

func TestAddRunReplacesItselfAndEndsThoseThatWereKilled(t *testing.T) {
	t.Parallel()
	r := &Record{}
	for _, run := range []Run{
		{ID: "1", Result: Running}, {ID: "1", Result: Done},
		{ID: "2", Result: Running},
		{ID: "3", Result: Running}, {ID: "3", Result: Failed, Error: "no"},
		{ID: "4", Result: Running}, {ID: "5", Result: Running}, // 5 took the lock from 4,
		{ID: "4", Result: Stopped}, // which notices, and does not affect 5
	} {
		run.Exclusive = true
		r.AddRun(run)
	}
	want := []Run{
		{ID: "1", Result: Done}, {ID: "2", Result: Interrupted}, {ID: "3", Result: Failed, Error: "no"},
		{ID: "4", Result: Stopped}, {ID: "5", Result: Running},
	}
	for i := range want {
		want[i].Exclusive = true
	}
	if diff := cmp.Diff(want, r.History); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Runs on workers only hold no cluster lock and can run beside any other.
func TestARunEndsOnlyThoseThatHeldItsLock(t *testing.T) {
	t.Parallel()
	r := &Record{History: []Run{{ID: "old", Result: Running}}}
	for _, run := range []Run{
		{ID: "apply", Result: Running, Exclusive: true}, {ID: "worker", Result: Running},
		{ID: "another worker", Result: Running},
	} {
		r.AddRun(run)
	}
	results := func() string {
		var out []string
		for _, run := range r.History {
			out = append(out, run.ID+" "+string(run.Result))
		}
		return strings.Join(out, ", ")
	}
	if got := results(); got != "old running, apply running, worker running, another worker running" {
		t.Errorf("got %s", got)
	}
	r.AddRun(Run{ID: "next apply", Result: Running, Exclusive: true})
	if got := results(); got !=
		"old running, apply interrupted, worker running, another worker running, next apply running" {
		t.Errorf("got %s", got)
	}
}
