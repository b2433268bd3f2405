package record

import (
	"encoding/json"
	"slices"
	"time"
)

const (
	maxHistoryRuns    = 50
	maxHistoryBytes   = 256 << 10
	minHistoryBytes   = 32 << 10 // for the results of the last runs, without steps
	maxConfigMapBytes = 1 << 20  // maximum size of a ConfigMap
)

// Result is the result of a run or step.
type Result string

// Results of runs and steps.
const (
	Running Result = "running" // not ended yet, or killed unnoticed
	Done    Result = "done"
	Failed  Result = "failed"
	Stopped Result = "stopped" // by its operator, after running steps had finished
	// Interrupted is a run that was killed, lost its lock, or whose operator did not wait for running steps.
	Interrupted Result = "interrupted"
	Skipped     Result = "skipped" // steps only: a needed step failed, or the run was stopped
)

// Run is one run in the history.
type Run struct {
	ID         string    `json:"id"`
	Who        string    `json:"who"`              // the operator's user name
	From       string    `json:"from"`             // the operator's machine
	Routes     []string  `json:"routes,omitempty"` // what the plan was for, in order: "install", "upgrade"
	PlanDigest string    `json:"planDigest"`
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished,omitzero"` // zero if it is running or was killed
	Result     Result    `json:"result"`
	Error      string    `json:"error,omitempty"` // what failed, in a few words
	Planned    int       `json:"planned"`         // how many steps the plan had
	// Exclusive says that the run holds the cluster's lock. Only one run holds it at a time. Runs on workers only do
	// not need it.
	Exclusive bool   `json:"exclusive,omitempty"`
	Steps     []Step `json:"steps,omitempty"` // begun or skipped steps, in order
}

// Interrupt marks a run that has not ended as killed.
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

// AddRun appends a run to the history, or replaces the one with the same ID. A new run with the cluster's lock means
// that others with that lock that have not ended were killed. Runs without that lock can run beside any other and are
// not affected.
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

// trimHistory encodes the last runs as JSON. If they exceed room bytes, it drops steps, those of the oldest runs first.
func (r *Record) trimHistory(room int) ([]byte, error) {
	runs := append([]Run{}, r.History[max(0, len(r.History)-maxHistoryRuns):]...)
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
