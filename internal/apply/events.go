package apply

import (
	"context"
	"fmt"
	"time"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/record"
)

// eventRecorder is an API that records Node Events. *cluster.Client implements it.
type eventRecorder interface {
	WriteEvent(ctx context.Context, e record.Event) error
}

// eventQueue records Node Events in its own goroutine, so that steps never wait for a write. It retries a failed write
// with the next Event, and once more when the run ends.
type eventQueue struct {
	queue chan record.Event // has room for every Event of a run
	over  chan struct{}
	abort context.CancelFunc
}

// recordEvents starts recording Events.
func (r *Run) recordEvents(ctx context.Context) {
	ctx, abort := context.WithCancel(context.WithoutCancel(ctx))
	r.events = eventQueue{queue: make(chan record.Event, len(r.Plan.Steps)), over: make(chan struct{}), abort: abort}
	go func() {
		defer close(r.events.over)
		var left []record.Event
		for e := range r.events.queue {
			left = r.sendEvents(ctx, append(left, e))
		}
		r.sendEvents(ctx, left)
	}()
}

// flush waits until all Events are written or ctx ends. Events not written by then are lost.
func (q *eventQueue) flush(ctx context.Context) {
	close(q.queue)
	select {
	case <-q.over:
	case <-ctx.Done():
	}
	q.abort()
	<-q.over
}

// queueEvent queues an Event about the Node of a finished step.
func (r *Run) queueEvent(res result, took time.Duration) {
	e, ok := nodeEvent(res, took)
	if !ok || r.endsCluster() {
		return
	}
	if e.Node == "" {
		e.Node = r.nodeName(res.step.Host)
	}
	e.RunID, e.Time = r.RunID, r.Now()
	r.events.queue <- e
}

// sendEvents writes Events and returns those worth a retry.
func (r *Run) sendEvents(ctx context.Context, events []record.Event) []record.Event {
	if len(events) == 0 {
		return nil
	}
	api, done, err := r.historyClient()
	if err != nil {
		return events
	}
	defer done()
	to, ok := api.(eventRecorder)
	if !ok {
		return nil
	}
	for i, e := range events {
		if err := recordEvent(ctx, to, e); apicall.Classify(err) == apicall.Transient {
			return events[i:]
		}
	}
	return nil
}

func recordEvent(ctx context.Context, to eventRecorder, e record.Event) error {
	ctx, cancel := context.WithTimeout(ctx, historyPatience)
	defer cancel()
	return to.WriteEvent(ctx, e)
}

// nodeEvent returns the Event about a finished step for the Node of its host. It returns false if the step has no Node.
func nodeEvent(res result, took time.Duration) (record.Event, bool) {
	s := res.step
	reason := s.Intent.Kind.Event()
	if reason == "" || s.Host == "" && s.Intent.NodeName == "" {
		return record.Event{}, false
	}
	e := record.Event{Node: s.Intent.NodeName, Reason: reason}
	if res.err != nil {
		e.Reason, e.Warning = "KubeOneFailed", true
		e.Message = fmt.Sprintf("%s: failed after %s: %s", s.Title, took.Round(100*time.Millisecond),
			problemOf(res.err))
		return e, true
	}
	e.Message = fmt.Sprintf("%s: done in %s", s.Title, took.Round(100*time.Millisecond))
	if s.Reason != "" {
		e.Message += " (" + s.Reason + ")"
	}
	return e, true
}
