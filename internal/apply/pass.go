package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kubeone/internal/cluster/drain"
	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/step"
)

const (
	passPatience   = 15 * time.Second // in one pass, for a step through the API, or what must hold before one on a host
	uploadPatience = 20 * time.Second // after so long a pass begins to send no other file
	// pollFlockTimeout is for an attempt to start a step to end; after that the next pass asks again.
	pollFlockTimeout = 10 * time.Second
)

// unfinishedError says that a step goes on after a pass.
type unfinishedError struct{ why error }

// Error says what it waits for.
func (e *unfinishedError) Error() string { return fmt.Sprintf("not done yet: %v", e.why) }

// Unwrap returns what it waits for.
func (e *unfinishedError) Unwrap() error { return e.why }

// unfinished reports whether the error says that a step goes on.
func unfinished(err error) bool {
	var e *unfinishedError
	return errors.As(err, &e)
}

// errRunning is why a step goes on that runs on its host.
var errRunning = errors.New("it runs on its host")

// Pass carries the plan on as far as that goes without a wait, instead of Do: it looks once at every step that is
// running, begins those that may begin, and goes on with what becomes possible by steps that are done at once.
// Steps on hosts are started and not followed, a node is drained by one pass of evictions, and what waits for
// something looks for it for some seconds. A step that goes on is Running in the progress returned, and is no
// error; the error joins what failed in this pass. With stop, no other step is begun. A Run makes one pass: each
// has a Run of its own, with the world as it is then.
func (r *Run) Pass(ctx context.Context, at Progress, stop bool) (Progress, error) {
	if at.Over {
		return at, nil
	}
	at = at.clone()
	r.at = &at
	r.setUp()
	defer r.close()
	r.goOn(ctx)
	schedule := NewSchedule(r.Plan, r.Parallel)
	schedule.Restore(at.State)
	if stop {
		r.skipped(schedule.Stop())
	}
	var errs []error
	deadline := r.Now().Add(passPatience)
	todo := append(schedule.Running(), schedule.Next()...)
	for more := true; more && len(todo) > 0; {
		ended, failed := r.round(ctx, schedule, todo)
		errs = append(errs, failed...)
		if more = ended && ctx.Err() == nil && r.Now().Before(deadline); more {
			todo = schedule.Next()
		}
	}
	if err := ctx.Err(); err != nil {
		errs = append(errs, err)
	} else if at.Over = !schedule.Busy() && len(schedule.Next()) == 0; at.Over {
		errs = append(errs, r.uncordonLeft(ctx, schedule.LeftCordoned()))
	}
	return r.leave(ctx, errs, stop)
}

// goOn begins the run, or restores what passes before have learnt.
func (r *Run) goOn(ctx context.Context) {
	if r.at.Entry.ID == "" {
		r.start(ctx)
		return
	}
	r.started = r.at.Entry.Started
	r.history.run = r.at.Entry
	r.state.tokenIDs = slices.Clone(r.at.Tokens)
	r.recordEvents(ctx)
}

// leave ends the pass, and the run if it is over.
func (r *Run) leave(ctx context.Context, errs []error, stopped bool) (Progress, error) {
	for _, err := range errs {
		if err != nil && ctx.Err() == nil {
			r.at.Failures = append(r.at.Failures, problemOf(err))
		}
	}
	err := errors.Join(errs...)
	if r.at.Over {
		r.finish(ctx, r.outcome(stopped))
	} else {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyPatience)
		r.events.flush(within)
		cancel()
	}
	r.state.Lock()
	r.at.Tokens = slices.Clone(r.state.tokenIDs)
	r.state.Unlock()
	r.at.Entry = r.history.entry()
	return *r.at, err
}

// outcome is how the whole run went; failures of earlier passes are known in words only.
func (r *Run) outcome(stopped bool) error {
	var errs []error
	for _, text := range r.at.Failures {
		errs = append(errs, errors.New(text))
	}
	if stopped {
		errs = append(errs, ErrStopped)
	}
	return errors.Join(errs...)
}

// round looks at steps once, at all of them at the same time, and reports whether one of them has ended.
func (r *Run) round(ctx context.Context, schedule *Schedule, todo []plan.Step) (ended bool, failed []error) {
	results := make(chan result, len(todo))
	for _, s := range todo {
		if r.at.State(s.ID) == Waiting {
			r.emit(Event{Type: StepStarted, Step: s.ID, Host: r.name(s.Host), Title: s.Title})
		}
		go func() { results <- result{s, r.runStep(ctx, s)} }()
	}
	for range todo {
		res := <-results
		if res.err != nil && (unfinished(res.err) || ctx.Err() != nil) {
			continue
		}
		ended = true
		if res.err != nil {
			failed = append(failed, res.err)
		}
		r.settle(schedule, res, r.since(res.step.ID))
	}
	r.at.Entry = r.history.entry()
	return ended, failed
}

// since is for how long the step has been running.
func (r *Run) since(id string) time.Duration {
	for _, s := range r.history.entry().Steps {
		if s.ID == id {
			return r.Now().Sub(r.started) - time.Duration(s.Began*float64(time.Second))
		}
	}
	return 0
}

// later is the error of a step that waits for something: it goes on, unless it has waited for too long.
func (r *Run) later(s plan.Step, why error, limit time.Duration) error {
	if took := r.since(s.ID); took > limit {
		return fmt.Errorf("gave up after %s: %w", limit, why)
	}
	return &unfinishedError{why}
}

// passOnCluster carries a step through the API as far as one pass goes.
func (r *Run) passOnCluster(ctx context.Context, s plan.Step) error {
	limit := StepLimit(s.Intent)
	if r.accessNow() == nil {
		return r.later(s, errors.New("the API of the cluster cannot be reached"), limit)
	}
	within, cancel := context.WithTimeout(ctx, passPatience)
	defer cancel()
	err := r.onCluster(within, s)
	if err != nil && !unfinished(err) && within.Err() != nil && ctx.Err() == nil {
		return r.later(s, err, limit)
	}
	return err
}

// passOnHost looks for a step on its host, and starts it if it was not begun.
func (r *Run) passOnHost(ctx context.Context, s plan.Step, output *lineWriter) error {
	h := r.Hosts[s.Host]
	if h == nil {
		return r.later(s, errors.New("its host does not answer"), StepTimeout)
	}
	r.resumeOutput(s, output)
	latest, err := r.poll(ctx, h, s, output)
	r.keepOutput(s, output)
	begun := latest == s.ID
	switch {
	case err != nil && interrupted(err) && ctx.Err() == nil:
		r.emit(Event{Type: Warning, Step: s.ID, Host: h.Name(), Line: "looking again later: " + firstLine(err.Error())})
		return r.later(s, err, StepTimeout)
	case begun && errors.Is(err, errRunning):
		return r.later(s, errors.Join(err, r.approvePending(ctx, s)), StepTimeout)
	case begun && err != nil:
		return explain(err, h.Name(), s)
	case begun:
		return r.after(ctx, s)
	case r.needs(latest, s.ID):
		return nil // what needs it was begun, so it is done, and nobody could keep that
	case err != nil:
		return r.later(s, explain(err, h.Name(), s), StepTimeout) // another step runs there
	}
	return r.begin(ctx, h, s)
}

// approvePending approves what the kubelet of a host that joins may have asked for: nobody does between passes.
func (r *Run) approvePending(ctx context.Context, s plan.Step) error {
	if !slices.Contains(s.Intent.Secrets(), step.TokenSecret) {
		return nil
	}
	client, err := r.client() //nolint:contextcheck // it outlives the step
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, passPatience)
	defer cancel()
	return client.ApprovePending(ctx, r.expected(), r.tellDecision)
}

// begin starts a step on its host and leaves it there.
func (r *Run) begin(ctx context.Context, h host.Host, s plan.Step) error {
	secrets, err := r.bring(ctx, h, s)
	if err == nil {
		within, cancel := context.WithTimeout(ctx, passPatience)
		defer cancel()
		if err = r.mayBegin(within, s); err != nil && within.Err() != nil && ctx.Err() == nil {
			return r.later(s, err, StepTimeout)
		}
	}
	if err == nil {
		_, err = h.Run(ctx, r.startCmd(s, secrets))
	}
	switch {
	case unfinished(err):
		return err
	case err == nil:
		return r.later(s, errRunning, StepTimeout)
	case interrupted(err) && ctx.Err() == nil:
		return r.later(s, err, StepTimeout)
	}
	return explain(err, h.Name(), s)
}

// poll asks a host for the latest step of the run there: its ID, and how it ended. The error is errRunning while it
// runs.
func (r *Run) poll(ctx context.Context, h host.Host, s plan.Step, output *lineWriter) (latest string, err error) {
	res, err := h.Run(ctx, host.Cmd{
		Name: s.Title, Script: locking(pollFlockTimeout, "alone", "poll"),
		Args:   []string{r.generation(s), r.RunID, s.ID},
		Stdout: output, Timeout: passPatience,
	})
	said := res.Stderr
	var exit *host.ExitError
	if errors.As(err, &exit) {
		if exit.Signal != "" {
			return "", err
		}
		said = exit.Stderr
		own := *exit
		own.Stderr = nil // it says which step this is
		if exit.Code != exitBusy && exit.Code != exitLocked {
			err = &own
		}
	}
	for line := range strings.Lines(string(said)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "step="); ok {
			latest = id
		}
	}
	switch {
	case exit != nil && exit.Code == exitRunning:
		return latest, errRunning
	case exit != nil && exit.Code == exitNeverBegun:
		return "", nil
	}
	return latest, err
}

// needs reports whether a step of the plan needs another one, directly or not.
func (r *Run) needs(id, other string) bool {
	s, ok := r.Plan.Step(id)
	return ok && slices.ContainsFunc(s.Needs, func(need string) bool { return need == other || r.needs(need, other) })
}

func (r *Run) resumeOutput(s plan.Step, w *lineWriter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.told = r.at.Printed[s.ID]
	w.again()
}

func (r *Run) keepOutput(s plan.Step, w *lineWriter) {
	w.mu.Lock()
	told := w.told
	w.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at.Printed[s.ID] = told
}

// drainPass asks the pods of a node once to leave.
func (r *Run) drainPass(ctx context.Context, client API, s plan.Step, opts drain.Options) error {
	r.mu.Lock()
	state := r.at.Drains[s.ID]
	r.mu.Unlock()
	_, done, err := client.DrainPass(ctx, s.Intent.NodeName, &state, opts)
	r.mu.Lock()
	r.at.Drains[s.ID] = state
	r.mu.Unlock()
	blocked := (*drain.BlockedError)(nil)
	switch {
	case !done && err == nil:
		return &unfinishedError{fmt.Errorf("%d pods are left on %s", len(state.Left), s.Intent.NodeName)}
	case !done, ctx.Err() != nil && err != nil && !errors.As(err, &blocked):
		return &unfinishedError{err}
	}
	return err
}

// silenceOf is what is known of the silence of what the step removes.
func (r *Run) silenceOf(s plan.Step) Silence {
	if r.at == nil {
		return Silence{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.Silences[s.ID]
}

// awaitLook waits until it is time for the next look at what should be dead; a pass does not wait.
func (r *Run) awaitLook(ctx context.Context, last time.Time) error {
	if r.at == nil {
		return r.pause(ctx, DeathEvery)
	}
	if waited := r.Now().Round(0).Sub(last); waited < 0 || waited >= DeathEvery {
		return nil
	}
	return &unfinishedError{errors.New("it is looked at again for signs of life")}
}

// noteSilence keeps what a look has found, for the next pass.
func (r *Run) noteSilence(s plan.Step, is Silence) {
	if r.at == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at.Silences[s.ID] = is
}
