package record

import (
	"encoding/json"
	"slices"
	"time"
)

const (
	historyRuns  = 50
	historyBytes = 256 << 10
	leastHistory = 32 << 10 // what the last runs came to, without their steps
	mostBytes    = 1 << 20  // what a ConfigMap holds
)

// Result is how a run or one of its steps went.
type Result string

// The results.
const (
	Running Result = "running" // it has not ended yet, or was killed and nobody has noticed
	Done    Result = "done"
	Failed  Result = "failed"
	Stopped Result = "stopped" // by its operator: what was running was finished first
	// Interrupted is a run that was killed, that lost its lock, or whose operator did not wait for what was running.
	Interrupted Result = "interrupted"
	Skipped     Result = "skipped" // only a step: one that it needs failed, or the run was stopped
)

// Run is one run as the history has it.
type Run struct {
	ID         string    `json:"id"`
	Who        string    `json:"who"`              // the operator's user name
	From       string    `json:"from"`             // the operator's machine
	Routes     []string  `json:"routes,omitempty"` // what the plan was for, in order: "install", "upgrade"
	PlanDigest string    `json:"planDigest"`
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished,omitzero"` // zero while it is running, and of one that was killed
	Result     Result    `json:"result"`
	Error      string    `json:"error,omitempty"` // what failed, in a few words
	Planned    int       `json:"planned"`         // how many steps the plan had
	// Exclusive says that the run holds the cluster's lock, which one run has at a time. Runs about workers alone do
	// not need it.
	Exclusive bool   `json:"exclusive,omitempty"`
	Steps     []Step `json:"steps,omitempty"` // those that were begun or skipped, in that order
}

// Interrupt says of a run that has not ended that it will not: it was killed.
func (r *Run) Interrupt() {
	if r.Result != Running {
		return
	}
	r.Result, r.Steps = Interrupted, slices.Clone(r.Steps)
	for i := range r.Steps {
		if r.Steps[i].Result == Running {
			r.Steps[i].Result = Interrupted
		}
	}
}

// Step is a step of a run.
type Step struct {
	ID      string  `json:"id"` // as in the plan: "join-etcd/cp-2"
	Result  Result  `json:"result"`
	Began   float64 `json:"began,omitempty"`   // seconds after the run's start
	Seconds float64 `json:"seconds,omitempty"` // how long it took
}

// AddRun appends a run to the history, or replaces the one of the same ID. When a run appears that holds the cluster's
// lock, others that held it and have not ended were killed. Runs without that lock say nothing about others, and
// nothing is said about them: they work beside any other run.
func (r *Record) AddRun(run Run) {
	at := slices.IndexFunc(r.History, func(other Run) bool { return other.ID == run.ID })
	if at >= 0 {
		r.History[at] = run
		return
	}
	for i := range r.History {
		if other := &r.History[i]; run.Exclusive && other.Exclusive {
			other.Interrupt()
		}
	}
	r.History = append(r.History, run)
}

// trimHistory is the history as JSON: the last runs, and of those that no longer fit into so many bytes only what they
// came to, the oldest first.
func (r *Record) trimHistory(room int) ([]byte, error) {
	runs := append([]Run{}, r.History[max(0, len(r.History)-historyRuns):]...)
	sizes, total := make([]int, len(runs)), 0
	for i := range runs {
		text, err := json.Marshal(runs[i])
		if err != nil {
			return nil, err
		}
		sizes[i] = len(text) + len(",")
		total += sizes[i]
	}
	for i := 0; i < len(runs) && total > room; i++ {
		runs[i].Steps = nil
		text, err := json.Marshal(runs[i])
		if err != nil {
			return nil, err
		}
		total += len(text) + len(",") - sizes[i]
	}
	return json.Marshal(runs)
}
