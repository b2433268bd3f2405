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

// Timeouts and intervals.
const (
	PollEvery      = 200 * time.Millisecond // between requests for what cannot be watched
	RequestTimeout = 10 * time.Second       // for one request
	OpTimeout      = 30 * time.Second       // for an operation whose context has no deadline
	WaitLimit      = 10 * time.Minute       // for a wait whose context has no deadline
)

// isConnectionLost reports whether a connection was refused or ended early, as when an API server restarts.
func isConnectionLost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// WithDefaultTimeout returns the context with this timeout if ctx has no deadline. Otherwise the deadline of ctx stays.
func WithDefaultTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// Retry repeats the call until it succeeds, fails with an error that is not transient, or the context ends. If ctx has
// no deadline, the timeout is OpTimeout. The error is an *Error that includes the last failure, not only "deadline
// exceeded".
func Retry(ctx context.Context, op, node string, call func(context.Context) error) error {
	ctx, cancel := WithDefaultTimeout(ctx, OpTimeout)
	defer cancel()
	policy := retry.Policy{Transient: isTransient, First: 100 * time.Millisecond, Factor: 2, Max: 2 * time.Second}
	err := policy.Do(ctx, call)
	if err != nil && isTransient(err) { // the context has ended
		return EndedError(ctx, op, node, err.Error())
	}
	return Wrap(op, node, err)
}

func isTransient(err error) bool { return Classify(err) == Transient }

// EndedError returns the error of an operation whose context ended. It is an *Error with the cause and, unless last is
// empty, the last observed state.
func EndedError(ctx context.Context, op, node, last string) error {
	cause := context.Cause(ctx)
	if last != "" {
		cause = fmt.Errorf("%w; last: %s", cause, last)
	}
	return Wrap(op, node, cause)
}

// source lists and watches objects of one kind. Every typed client implements it.
type source[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// Await watches the named object until check returns true. check also describes the current state, for the error at the
// deadline. An error from check ends the wait; an API server restart does not. If ctx has no deadline, the timeout is
// WaitLimit.
func Await[O metav1.Object, L runtime.Object](ctx context.Context, from source[L], op, name string,
	check func(O) (bool, string, error)) error {
	ctx, cancel := WithDefaultTimeout(ctx, WaitLimit)
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
			ok, description, err := check(o)
			state = description
			return ok, err
		})
		switch {
		case done:
			return nil
		case ctx.Err() != nil: // not the call's error, which follows from it
			return EndedError(ctx, op, name, state)
		case err != nil && Classify(err) != Transient:
			return Wrap(op, name, err)
		case err != nil:
			state = err.Error()
		}
		if !retry.Pause(ctx, PollEvery) {
			return EndedError(ctx, op, name, state)
		}
	}
}

// Follow lists and then watches objects, and calls visit for each of them. It returns when visit returns true or an
// error. If the watch ends first, it returns false and nil, and the caller may call it again.
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

// watchFrom watches from the version in opts.
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
