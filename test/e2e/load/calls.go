package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// calls counts requests as a patient client experiences them.
type calls struct {
	Requests int `json:"requests"`
	// Retries are attempts after the first. Failed are requests that two retries did not serve.
	Retries int `json:"retries"`
	Failed  int `json:"failedAfterTwoRetries"`
	// Slowest is the longest time from a request's first attempt to its answer.
	Slowest float64 `json:"slowestSeconds"`
	// Errors counts failed attempts by error.
	Errors map[string]int `json:"errors,omitempty"`
}

// attemptRequest attempts a request until it is served. It returns false when ctx ends before.
func (c *calls) attemptRequest(ctx context.Context, attempt func(context.Context) error) bool {
	began := time.Now()
	for tries := 0; ; tries++ {
		limited, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := attempt(limited)
		cancel()
		if ctx.Err() != nil {
			return false // an attempt that ctx interrupts counts for nothing
		}
		if tries == 0 {
			c.Requests++
		} else {
			c.Retries++
		}
		if err == nil {
			c.Slowest = max(c.Slowest, time.Since(began).Seconds())
			return true
		}
		c.Errors[kindOf(err)]++
		if tries == enough {
			c.Failed++
		}
		if !awaitNext(ctx, retryAfter(tries)) {
			return false
		}
	}
}

// retryAfter returns a client's delay before the next attempt: 100 ms, doubled each time, at most 1 s.
func retryAfter(tries int) time.Duration {
	return min(100*time.Millisecond<<min(tries, 5), time.Second)
}

// kindOf returns an error's text without addresses, so that equal errors can be counted.
func kindOf(err error) string {
	var status *apierrors.StatusError
	var op *net.OpError
	switch {
	case errors.As(err, &status):
		return fmt.Sprintf("%d %s", status.ErrStatus.Code, status.ErrStatus.Message)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %s", attemptTimeout)
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}
