package apicall

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestClasses(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Resource: "nodes"}
	for name, c := range map[string]struct {
		err  error
		want Class
	}{
		"none":                {nil, ""},
		"conflict":            {apierrors.NewConflict(gr, "n", nil), Transient},
		"too many requests":   {apierrors.NewTooManyRequests("wait", 1), Transient},
		"etcd changed leader": {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), Transient},
		"gone":                {apierrors.NewResourceExpired("old"), Transient},
		"not found":           {apierrors.NewNotFound(gr, "n"), Terminal},
		"forbidden":           {apierrors.NewForbidden(gr, "n", nil), Transient},
		"invalid":             {apierrors.NewBadRequest("no"), Terminal},
		"deadline":            {context.DeadlineExceeded, Transient},
		"cancelled":           {context.Canceled, Terminal},
		"anything else":       {errors.New("what"), Terminal},
		"wrapped class stays": {
			fmt.Errorf("x: %w", &Error{Op: "o", Class: Operator, Err: apierrors.NewConflict(gr, "n", nil)}), Operator,
		},
		"status inside a wrap": {fmt.Errorf("x: %w", apierrors.NewTimeoutError("slow", 1)), Transient},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
