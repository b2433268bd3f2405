package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errPassing, errFinal = errors.New("passing"), errors.New("final")

func passing(err error) bool { return errors.Is(err, errPassing) }

func TestWhatIsTriedAgainAndWhen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy Policy
		errs   []error // of successive calls; nil after the last
		want   error
		at     []time.Duration // when each call was made
	}{
		"success": {policy: Policy{Transient: passing}, at: []time.Duration{0}},
		"the zero value tries once": {
			errs: []error{errPassing}, want: errPassing, at: []time.Duration{0},
		},
		"a final error ends it": {
			policy: Policy{Transient: passing, First: time.Second},
			errs:   []error{errPassing, errFinal}, want: errFinal, at: []time.Duration{0, time.Second},
		},
		"as many attempts as allowed": {
			policy: Policy{Transient: passing, Attempts: 2, First: time.Second},
			errs:   []error{errPassing, errPassing}, want: errPassing, at: []time.Duration{0, time.Second},
		},
		"pauses grow up to a limit": {
			policy: Policy{Transient: passing, First: time.Second, Factor: 2, Max: 3 * time.Second},
			errs:   []error{errPassing, errPassing, errPassing, errPassing},
			at:     []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second, 9 * time.Second},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var at []time.Duration
			err := c.policy.Do(t.Context(), func(context.Context) error {
				at = append(at, time.Since(began))
				if n := len(at); n <= len(c.errs) {
					return c.errs[n-1]
				}
				return nil
			})
			if diff := cmp.Diff(c.at, at); diff != "" || !errors.Is(err, c.want) {
				t.Errorf("%s: %v, %s", name, err, diff)
			}
		})
	}
}

func TestTheEndOfTheContextGivesTheLastError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		calls := 0
		err := Policy{Transient: passing, First: time.Minute}.Do(ctx, func(context.Context) error {
			calls++
			return errPassing
		})
		if !errors.Is(err, errPassing) || calls != 2 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}
