// Package apply runs a plan; it is the only stage that changes anything. Its scheduler is pure. The code around it
// runs steps through the API, and on hosts as transient units that survive a lost connection or a killed operator's
// process.
package apply

import (
	"context"
	"errors"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"kubeone/internal/addons"
	"kubeone/internal/cluster"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/locks"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/retry"
	"kubeone/internal/text/pattern"
)

// Run is one execution of a plan. Its exported fields are set before Do and do not change afterwards.
type Run struct {
	Plan  plan.Plan
	Want  desired.Cluster
	World observed.World
	Hosts map[string]host.Host // by ID; hosts that the plan changes or that give access to the API
	// by ID; hosts that did not answer; only checked again to confirm that they are dead
	Unreachable map[string]host.Host
	Scripts     map[string]string // by host ID
	Blobs       Blobs             // nil when hosts download
	Access      *cluster.Access   // nil while there is no cluster
	// FallbackAPI is used to write the history if the run has no access to the API; nil if unknown.
	FallbackAPI *cluster.Access
	Etcd        *etcd.Access // nil while there is no cluster
	Connect     Connectors   // open connections to the API and to etcd
	// CheckLock runs before every step, and its error fails the step. It is needed because the API, and hosts that
	// another run has not locked, do not refuse steps after that run has taken the cluster lock. The access is the
	// current one, or nil if there is none yet. A nil CheckLock allows every step.
	CheckLock func(context.Context, plan.Step, *cluster.Access) error
	// Credentials are the host credentials for registries and proxies. Nil means unknown, and hosts keep their
	// credentials.
	Credentials *desired.Credentials

	// RunHook runs hooks on the operator's machine. If it is nil, a plan with such hooks fails.
	RunHook RunHook

	Copy     *Copy // the source of a restore; nil if the plan has none
	Files    Files // secret files for components of the control plane
	Addons   []addons.Addon
	Releases HelmReleases // that the plan applies
	Manifest string       // as kept in the cluster: without secrets
	Lock     *locks.HostLocks
	// Exclusive means that the run holds the cluster lock, not only the locks of workers.
	Exclusive bool
	RunID     string
	Holder    string // user@machine
	Parallel  int    // hosts busy at a time; 0: no limit
	Emit      func(Event)
	Now       func() time.Time

	mu       sync.Mutex
	pause    func(ctx context.Context, d time.Duration) bool // between attempts; nil is retry.Pause
	scripted map[string]bool
	started  time.Time
	session
	history history
	events  eventQueue
}

// StepError is the failure of one step.
type StepError struct {
	Step plan.Step
	Host string   // display name; empty for the cluster
	Tail []string // the last lines of the host's output
	Err  error
}

// Error names the host, the step and the cause, and ends with the last lines of the host's output.
func (e *StepError) Error() string {
	where := e.Host
	if where == "" {
		where = "cluster"
	}
	text := where + ": " + e.Step.Title + ": "
	text += strings.TrimPrefix(e.Err.Error(), text) // errors of hosts carry this prefix already
	for _, line := range e.Tail {
		text += "\n    | " + line
	}
	return text
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// ErrStopped means that the operator stopped the run. Steps that were running have finished.
var ErrStopped = errors.New("stopped: running steps finished and no others started; run kubeone apply again to resume")

// Do runs the plan to its end. When a step fails, Do skips the steps that need it and still runs all others; the
// error joins every *StepError. When stop is closed, Do finishes the running steps and returns ErrStopped. When ctx
// ends, Do does not wait for running steps: they continue on their hosts, and the next run finds them.
func (r *Run) Do(ctx context.Context, stop <-chan struct{}) error {
	r.scripted = map[string]bool{}
	if r.pause == nil {
		r.pause = retry.Pause
	}
	defer r.close()
	r.started = r.Now()
	r.emitEvent(Event{Type: RunStarted, Total: len(r.Plan.Steps), Digest: r.Plan.Digest()})
	r.openEntry(ctx)
	err := r.runSteps(ctx, stop)
	r.reportEnd(ctx, err)
	return err
}

// reportEnd completes the history entry, runs the hooks for a failed run, and emits the last event.
func (r *Run) reportEnd(ctx context.Context, err error) {
	r.closeEntry(ctx, err)
	r.runFailureHooks(ctx, err)
	last := Event{Type: RunFinished, Seconds: r.Now().Sub(r.started).Seconds()}
	if err != nil {
		last.Error = err.Error()
	}
	r.emitEvent(last)
}

type result struct {
	step plan.Step
	err  error
}

// runSteps starts the steps that may start, waits for a result, and repeats.
func (r *Run) runSteps(ctx context.Context, stop <-chan struct{}) error {
	schedule := NewSchedule(r.Plan, r.Parallel)
	results := make(chan result, len(r.Plan.Steps)) // one per step, because results are not read after ctx ends
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	running := map[string]time.Time{}
	var errs []error
	for {
		for _, s := range schedule.Next() {
			running[s.ID] = r.Now()
			r.emitEvent(Event{Type: StepStarted, Step: s.ID, Host: r.displayName(s.Host), Title: s.Title})
			go func() { results <- result{s, r.runStep(ctx, s)} }()
		}
		if !schedule.Busy() {
			return errors.Join(append(errs, r.uncordonUnchanged(ctx, schedule.LeftCordoned()))...)
		}
		select {
		case res := <-results:
			r.recordResult(schedule, res, r.Now().Sub(running[res.step.ID]))
			delete(running, res.step.ID)
			if res.err != nil {
				errs = append(errs, res.err)
			}
		case <-stop:
			stop = nil
			r.reportSkipped(schedule.Stop())
			errs = append(errs, ErrStopped)
		case <-beat.C:
			r.emitEvent(Event{
				Type:    Heartbeat,
				Running: sortedByTime(running),
				Done:    schedule.Count(Done),
				Total:   len(r.Plan.Steps),
			})
		case <-ctx.Done():
			endHooks(schedule.Running(), results)
			return errors.Join(append(errs, ctx.Err())...)
		}
	}
}

// hooksEnd is how long to wait for hooks on the operator's machine when their run ends.
const hooksEnd = 10 * time.Second

// endHooks waits until hooks on the operator's machine have ended, so that they can clean up.
func endHooks(running []plan.Step, results <-chan result) {
	remaining := len(slices.DeleteFunc(running, func(s plan.Step) bool { return !onOperator(s) }))
	for late := time.After(hooksEnd); remaining > 0; {
		select {
		case res := <-results:
			if onOperator(res.step) {
				remaining--
			}
		case <-late:
			return
		}
	}
}

// recordResult reports how a step ended, and which steps are skipped because of it.
func (r *Run) recordResult(schedule *Schedule, res result, took time.Duration) {
	r.reportResult(res, took, schedule.Count(Done)+1)
	r.queueEvent(res, took)
	r.reportSkipped(schedule.Finish(res.step.ID, res.err == nil))
}

func sortedByTime(m map[string]time.Time) []string {
	out := make([]string, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	sort.Strings(out)
	return out
}

func (r *Run) reportResult(res result, took time.Duration, done int) {
	e := Event{
		Type: StepDone, Step: res.step.ID, Host: r.displayName(res.step.Host), Title: res.step.Title,
		Seconds: took.Seconds(),
		Done:    done, Total: len(r.Plan.Steps),
	}
	if res.err != nil {
		e.Type, e.Error, e.Done = StepFailed, res.err.Error(), done-1
	}
	r.emitEvent(e)
}

func (r *Run) reportSkipped(steps []plan.Step) {
	for _, s := range steps {
		r.emitEvent(Event{Type: StepSkipped, Step: s.ID, Host: r.displayName(s.Host), Title: s.Title})
	}
}

// runStep runs one step: on its host, on the operator's machine, or through the API or etcd.
func (r *Run) runStep(ctx context.Context, s plan.Step) error {
	tail := &lineWriter{line: func(line string) {
		r.emitEvent(Event{Type: StepOutput, Step: s.ID, Host: r.displayName(s.Host), Line: line})
	}}
	err := r.Lock.Denied(s.Host)
	switch {
	case err != nil: // do not change the host
	case s.Intent.Kind.OnHost():
		err = r.runOnHost(ctx, s, tail)
	case s.Intent.Kind.Place() == step.OnOperator:
		err = r.runOperatorHooks(ctx, s, tail)
	default:
		err = r.runOnCluster(ctx, s)
	}
	tail.flush()
	if err == nil {
		return nil
	}
	return &StepError{Step: s, Host: r.displayName(s.Host), Tail: tail.last, Err: err}
}

// checkLock returns an error if another run has taken a lock that the step needs.
func (r *Run) checkLock(ctx context.Context, s plan.Step) error {
	if r.CheckLock == nil {
		return nil
	}
	return r.CheckLock(ctx, s, r.accessNow())
}

// accessNow returns the current access to the API, or nil if there is none yet.
func (r *Run) accessNow() *cluster.Access {
	r.state.Lock()
	defer r.state.Unlock()
	return r.Access
}

// displayName returns the host's display name; nodeName returns the name of its Node.
func (r *Run) displayName(id string) string { return r.Plan.Hosts[id] }

func (r *Run) nodeName(id string) string { return r.Plan.NodeOf(id) }

func (r *Run) emitEvent(e Event) {
	e.Format, e.Time, e.RunID = EventFormat, r.Now(), r.RunID
	r.history.noteEvent(e)
	r.Emit(e)
}

// lineWriter splits the output of a host into lines and keeps the last ones. It truncates lines after maxLineBytes and
// passes on at most maxLines of them, because a host may never stop printing.
type lineWriter struct {
	mu   sync.Mutex
	line func(string)
	rest string
	last []string
	told int // lines given to line
	skip int // number of lines to skip, because they were already passed on
}

// tokens matches bootstrap tokens, which are removed from all output.
var tokens = pattern.Lazy(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

var colours = pattern.Lazy("\x1b\\[[0-9;]*m")

const (
	tailLines    = 12      // lines of a host's output in an error
	maxLineBytes = 4 << 10 // bytes
	maxLines     = 50_000  // of a step; honest hosts print a few hundred
)

var _ io.Writer = (*lineWriter)(nil)

// Write accepts output in pieces of any size.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	remaining := string(p)
	for {
		piece, rest, found := strings.Cut(remaining, "\n")
		w.rest += piece[:min(len(piece), maxLineBytes-len(w.rest))]
		if !found {
			return len(p), nil
		}
		remaining = rest
		w.addLine(w.rest)
		w.rest = ""
	}
}

func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rest != "" {
		w.addLine(w.rest)
		w.rest = ""
	}
}

// restart prepares for the same output from its beginning, for example after a reconnect. Lines that were already
// passed on are skipped.
func (w *lineWriter) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest, w.last, w.skip = "", nil, w.told
}

func (w *lineWriter) addLine(line string) {
	if line = strings.TrimRight(host.Printable(colours().ReplaceAllString(line, "")), " "); line == "" {
		return
	}
	line = tokens().ReplaceAllString(line, "[token]")
	w.last = append(w.last, line)
	if len(w.last) > tailLines {
		w.last = w.last[1:]
	}
	if w.skip > 0 {
		w.skip--
		return
	}
	if w.told++; w.told <= maxLines {
		w.line(line)
	}
}
