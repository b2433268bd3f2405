package apply

import "time"

// EventFormat is the version of the event stream and of the journal, which share one format.
const EventFormat = 1

// EventType says what happened.
type EventType string

// The types of events.
const (
	RunStarted  EventType = "run-started"
	RunFinished EventType = "run-finished"
	StepStarted EventType = "step-started"
	StepOutput  EventType = "step-output" // a line printed by the host
	StepDone    EventType = "step-done"
	StepFailed  EventType = "step-failed"
	StepSkipped EventType = "step-skipped"
	Heartbeat   EventType = "heartbeat" // no other event for a while; Running lists the running steps
	Warning     EventType = "warning"
	Result      EventType = "result" // how the command ended; never in a journal
)

// Event is one line of the journal and of apply's JSON output. It never holds a secret.
type Event struct {
	Format  int       `json:"format"`
	Time    time.Time `json:"time"`
	RunID   string    `json:"runID"`
	Type    EventType `json:"type"`
	Step    string    `json:"step,omitempty"` // a step's ID
	Host    string    `json:"host,omitempty"` // a host's name
	Title   string    `json:"title,omitempty"`
	Line    string    `json:"line,omitempty"`    // step-output, warning, result
	Error   string    `json:"error,omitempty"`   // step-failed, run-finished, result
	Seconds float64   `json:"seconds,omitempty"` // how long it took
	Running []string  `json:"running,omitempty"` // heartbeat: IDs of running steps
	Done    int       `json:"done,omitempty"`    // steps done so far
	Total   int       `json:"total,omitempty"`   // steps of the plan
	Digest  string    `json:"digest,omitempty"`  // run-started: the plan's digest
	Unknown []string  `json:"unknown,omitempty"` // result: names of hosts about which nothing is known
}
