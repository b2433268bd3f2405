package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"kubeone/internal/retry"
)

// attempts is how often something is tried that fails for a passing reason.
const attempts = 3

// statusError is an HTTP answer other than 200.
type statusError struct {
	URL  string
	Code int
}

func (e *statusError) Error() string {
	if e.Code == http.StatusNotFound {
		return fmt.Sprintf("%s does not exist (HTTP 404)", e.URL)
	}
	return fmt.Sprintf("%s answers HTTP %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

// transient reports whether the same request may succeed a moment later.
func transient(err error) bool {
	var status *statusError
	var registry *transport.Error
	var dns *net.DNSError
	var op *net.OpError
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &status):
		return status.Code == http.StatusTooManyRequests || status.Code >= 500
	case errors.As(err, &registry):
		return registry.StatusCode == http.StatusTooManyRequests || registry.StatusCode >= 500
	case errors.As(err, &dns):
		return dns.IsTemporary && !dns.IsNotFound
	case errors.As(err, &op) && op.Op == "dial":
		return false // the kernel has tried several times already
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.EOF):
		return true
	}
	return errors.As(err, &network) && network.Timeout()
}

// tryAgain tries up to three times what fails for a passing reason; the pause grows with each failure, fourfold.
func tryAgain(ctx context.Context, pause time.Duration, try func() error) error {
	passing := func(err error) bool { return ctx.Err() == nil && transient(err) }
	policy := retry.Policy{Transient: passing, Attempts: attempts, First: pause, Factor: 4}
	return policy.Do(ctx, func(context.Context) error { return try() })
}
