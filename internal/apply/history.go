package apply

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"kubeone/internal/cluster/record"
	"kubeone/internal/locks"
	"kubeone/internal/model/desired"
	"kubeone/internal/plan"
	"kubeone/internal/text/phrase"
	"kubeone/internal/text/redact"
)

const (
	historyPatience = 5 * time.Second // for writing the entry, at the beginning and at the end of a run
	abortPatience   = 2 * time.Second // the same for an aborted run
	maxProblemBytes = 600             // bytes of an error in the history
)

// errTaken is recorded in the history for a step that ended because another run took the lock.
var errTaken = errors.New("another run took the lock")

// history is the entry of this run in the cluster history, updated as the run proceeds. It is best effort: a write
// takes at most historyPatience, and a failed write does not fail the run.
type history struct {
	mu  sync.Mutex
	run record.Run
}

// openEntry creates the entry of the run and writes it if there is a cluster. In a new cluster, the first update of the
// record writes it.
func (r *Run) openEntry(ctx context.Context) {
	who, from, _ := strings.Cut(r.Holder, "@")
	r.history.mu.Lock()
	r.history.run = record.Run{
		ID: r.RunID, Who: who, From: from, Routes: r.Plan.Routes, PlanDigest: r.Plan.Digest(), Started: r.started.UTC(),
		Result: record.Running, Planned: len(r.Plan.Steps), Exclusive: r.Exclusive,
	}
	r.history.mu.Unlock()
	r.recordEvents(ctx)
	if r.Access == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	r.keepEntry(ctx)
}

// closeEntry completes the entry of the run and writes it if the API answers. It writes nothing after a reset of the
// whole cluster, because there is no record any more.
func (r *Run) closeEntry(ctx context.Context, err error) {
	if cause := context.Cause(ctx); errors.Is(cause, locks.ErrLost) {
		err = errors.Join(err, errTaken)
	}
	r.history.endRun(err, r.Now())
	patience := historyPatience
	if ctx.Err() != nil {
		patience = abortPatience
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	defer r.events.flush(ctx)
	if !r.endsCluster() {
		r.keepEntry(ctx)
	}
}

// isForMachines reports whether every host of the run belongs to a Machine. Such runs are not in the history, because
// controllers start too many of them. Node Events, Machine conditions and the controller log report them instead.
func (r *Run) isForMachines() bool {
	hosts := r.Want.Hosts()
	return len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h desired.Host) bool { return h.Machine == "" })
}

// keepEntry writes the current entry of the run.
func (r *Run) keepEntry(ctx context.Context) {
	if r.isForMachines() {
		return
	}
	api, done, err := r.historyClient()
	if err != nil {
		return
	}
	defer done()
	_ = api.UpdateRecord(ctx, func(record *record.Record) error {
		record.AddRun(r.history.currentEntry())
		return nil
	})
}

// historyClient returns a connection to the API for the history. It uses the connection of the steps if there is one,
// and opens a new one otherwise. The caller must call done.
func (r *Run) historyClient() (api API, done func(), err error) {
	r.state.Lock()
	api, access := r.state.client, r.Access
	r.state.Unlock()
	if api != nil {
		return api, func() {}, nil
	}
	if access == nil {
		access = r.FallbackAPI
	}
	if api, err = r.Connect.connectAPI(access); err != nil {
		return nil, nil, err
	}
	return api, api.Close, nil
}

// endsCluster reports whether the plan resets every control-plane host.
func (r *Run) endsCluster() bool {
	for _, h := range r.Want.ControlPlane {
		if !slices.ContainsFunc(r.Plan.Steps, func(s plan.Step) bool {
			return s.Host == h.ID && s.Intent.Kind.ClearsHost()
		}) {
			return false
		}
	}
	return len(r.Want.ControlPlane) > 0
}

// noteEvent adds an event to the entry.
func (h *history) noteEvent(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Type {
	case StepStarted:
		h.run.Steps = append(h.run.Steps,
			record.Step{ID: e.Step, Result: record.Running, Began: roundSeconds(e.Time.Sub(h.run.Started))})
	case StepSkipped:
		h.run.Steps = append(h.run.Steps, record.Step{ID: e.Step, Result: record.Skipped})
	case StepDone:
		h.finishStep(e, record.Done)
	case StepFailed:
		h.finishStep(e, record.Failed)
	}
}

func (h *history) finishStep(e Event, result record.Result) {
	for i := range h.run.Steps {
		if s := &h.run.Steps[i]; s.ID == e.Step {
			s.Result, s.Seconds = result, roundSeconds(time.Duration(e.Seconds*float64(time.Second)))
		}
	}
}

// roundSeconds returns d in seconds, rounded to the millisecond.
func roundSeconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// currentEntry returns a copy of the entry.
func (h *history) currentEntry() record.Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.run
	out.Steps = slices.Clone(h.run.Steps)
	return out
}

// entryAfter returns the entry as it will be after the step with that ID; if it is the last step, the run is done too.
// The step that saves the record writes this entry. Without it, a run killed just after its last step would look
// incomplete.
func (h *history) entryAfter(id string, now time.Time) record.Run {
	out := h.currentEntry()
	if len(out.Steps) < out.Planned {
		return out
	}
	for i, s := range out.Steps {
		switch {
		case s.ID == id:
			began := time.Duration(s.Began * float64(time.Second))
			out.Steps[i].Result, out.Steps[i].Seconds = record.Done, roundSeconds(now.Sub(out.Started)-began)
		case s.Result != record.Done:
			return h.currentEntry()
		}
	}
	out.Result, out.Finished = record.Done, now.UTC()
	return out
}

// endRun records how the run ended.
func (h *history) endRun(err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.run.Finished, h.run.Result, h.run.Error = now.UTC(), resultOf(err), problemOf(err)
	for i := range h.run.Steps {
		if s := &h.run.Steps[i]; s.Result == record.Running {
			s.Result = record.Interrupted // it may still run on its host
		}
	}
}

func resultOf(err error) record.Result {
	var step *StepError
	switch {
	case err == nil:
		return record.Done
	case errors.As(err, &step):
		return record.Failed
	case errors.Is(err, ErrStopped):
		return record.Stopped
	case errors.Is(err, context.Canceled):
		return record.Interrupted
	}
	return record.Failed
}

// problemOf returns the text of err without host output and without secrets, because everyone who can read ConfigMaps
// sees it.
func problemOf(err error) string {
	if err == nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "|") && line != ErrStopped.Error() &&
			line != context.Canceled.Error() {
			lines = append(lines, line)
		}
	}
	return phrase.Shorten(redact.New().Text(strings.Join(lines, "; ")), maxProblemBytes)
}
