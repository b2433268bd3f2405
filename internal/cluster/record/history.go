package record

import (
	"encoding/json"
	"slices"
	"time"
)

const (
	maxHistoryRuns    = 50
	maxHistoryBytes   = 256 << 10
	minHistoryBytes   = 32 << 10 // space reserved for the results of the last runs, without steps
	maxConfigMapBytes = 1 << 20  // maximum size of a ConfigMap
)

// Result is the result of a run or step.
type Result string

// Results of runs and steps.
const (
	Running Result = "running" // in progress, or killed before it could record its end
	Done    Result = "done"
	Failed  Result = "failed"
	Stopped Result = "stopped" // stopped by the operator after the running steps had finished
	// Interrupted is a run that was killed, that lost its lock, or whose operator did not wait for the running steps.
	Interrupted Result = "interrupted"
	Skipped     Result = "skipped" // for steps only: a required step failed, or the run was stopped
)

// Run is one run in the history.
type Run struct {
	ID         string    `json:"id"`
	Who        string    `json:"who"`              // the operator's user name
	From       string    `json:"from"`             // the operator's machine
	Routes     []string  `json:"routes,omitempty"` // purposes of the plan, in order: "install", "upgrade"
	PlanDigest string    `json:"planDigest"`
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished,omitzero"` // zero if it is running or was killed
	Result     Result    `json:"result"`
	Error      string    `json:"error,omitempty"` // short description of the failure
	Planned    int       `json:"planned"`         // number of steps in the plan
	// Exclusive says that the run holds the cluster lock. Only one run holds it at a time. Runs that change only
	// workers do not need it.
	Exclusive bool   `json:"exclusive,omitempty"`
	Steps     []Step `json:"steps,omitempty"` // started or skipped steps, in order
}

// Interrupt marks the run, and its running steps, as Interrupted if the run has not ended.
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
	Seconds float64 `json:"seconds,omitempty"` // duration
}

// AddRun appends a run to the history, or replaces the run with the same ID. Only one run can hold the cluster lock.
// Therefore adding a run that holds it marks earlier ones that held it and have not ended as interrupted. Runs without
// the lock are not affected, because they can run at the same time as others.
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

// trimHistory encodes the last runs as JSON. If they exceed room bytes, it removes the steps of the oldest runs first.
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
