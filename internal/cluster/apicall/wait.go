package apicall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"kubeone/internal/retry"
)

// How long things may take.
const (
	PollEvery      = 200 * time.Millisecond // between looks where there is nothing to watch
	RequestTimeout = 10 * time.Second       // for one request
	OpTimeout      = 30 * time.Second       // for an operation whose context has no deadline
	WaitLimit      = 10 * time.Minute       // for a wait whose context has no deadline
)

// isCut reports whether a connection Ended in the middle, as it does when an API server restarts.
func isCut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Bounded gives a context a deadline unless it has one.
func Bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// Retry calls until it succeeds, fails with an error that is not transient, or the context ends (after OpTimeout
// where the context has no deadline). The error it returns is an *Error with the last failure, not merely
// "deadline exceeded".
func Retry(ctx context.Context, op, node string, call func(context.Context) error) error {
	ctx, cancel := Bounded(ctx, OpTimeout)
	defer cancel()
	policy := retry.Policy{Transient: isTransient, First: 100 * time.Millisecond, Factor: 2, Max: 2 * time.Second}
	err := policy.Do(ctx, call)
	if err != nil && isTransient(err) { // only the end of the context ends that
		return Ended(ctx, op, node, err.Error())
	}
	return Wrap(op, node, err)
}

func isTransient(err error) bool { return Classify(err) == Transient }

// Ended is the error of an operation whose context Ended, with the last thing that was seen.
func Ended(ctx context.Context, op, node, last string) error {
	cause := context.Cause(ctx)
	if last != "" {
		cause = fmt.Errorf("%w; last: %s", cause, last)
	}
	return Wrap(op, node, cause)
}

// source is where objects of one kind are listed and watched, as every typed client offers.
type source[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// Await waits until check says that the named object is as it should be, by watching it. What check returns beside
// is the state for the error at the deadline; an error from check ends the wait. An API that goes away and comes back
// does not end it.
func Await[O metav1.Object, L runtime.Object](ctx context.Context, from source[L], op, name string,
	check func(O) (bool, string, error)) error {
	ctx, cancel := Bounded(ctx, WaitLimit)
	defer cancel()
	state := "it does not exist"
	opts := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	for {
		done, err := Follow(ctx, from, opts, func(o O, deleted bool) (bool, error) {
			if o.GetName() != name {
				return false, nil
			}
			if deleted {
				state = "it was deleted"
				return false, nil
			}
			ok, now, err := check(o)
			state = now
			return ok, err
		})
		switch {
		case done:
			return nil
		case ctx.Err() != nil: // and not what that made of the call
			return Ended(ctx, op, name, state)
		case err != nil && Classify(err) != Transient:
			return Wrap(op, name, err)
		case err != nil:
			state = err.Error()
		}
		if !retry.Pause(ctx, PollEvery) {
			return Ended(ctx, op, name, state)
		}
	}
}

// Follow lists, then watches, giving every object to visit, until visit says that it is done or fails, or the watch
// ends, which gives false and no error.
func Follow[O metav1.Object, L runtime.Object](ctx context.Context, from source[L], opts metav1.ListOptions,
	visit func(o O, deleted bool) (bool, error)) (bool, error) {
	list, err := from.List(ctx, opts)
	if err != nil {
		return false, err
	}
	done := false
	err = meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(O)
		if !ok || done {
			return nil
		}
		done, err = visit(o, false)
		return err
	})
	if done || err != nil {
		return done, err
	}
	at, err := meta.ListAccessor(list)
	if err != nil {
		return false, err
	}
	opts.ResourceVersion = at.GetResourceVersion()
	return watchFrom(ctx, from, opts, visit)
}

// watchFrom watches from the version that opts names.
func watchFrom[O metav1.Object, L runtime.Object](ctx context.Context, from source[L], opts metav1.ListOptions,
	visit func(o O, deleted bool) (bool, error)) (bool, error) {
	events, err := from.Watch(ctx, opts)
	if err != nil {
		return false, err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case event, open := <-events.ResultChan():
			o, ok := event.Object.(O)
			if !open || event.Type == watch.Error {
				return false, nil
			}
			if !ok {
				continue
			}
			if done, err := visit(o, event.Type == watch.Deleted); done || err != nil {
				return done, err
			}
		}
	}
}
