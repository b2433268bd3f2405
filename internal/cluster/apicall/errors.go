// Package apicall is what every call to a cluster's API has in common: the name under which we write, how long a call
// may take, what is tried again, how a condition is awaited, and what an error says.
package apicall

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// FieldManager is the name under which we own fields of objects.
const FieldManager = "kubeone"

// RunIDAnnotation is the annotation that names the run that wrote an object.
const RunIDAnnotation = "kubeone.k8c.io/run-id"

// Class says what can be done about an error.
type Class string

// The classes. The zero value is that of no error.
const (
	Transient Class = "transient" // the same call may succeed a moment later
	Terminal  Class = "terminal"  // it will fail again until something is changed
	Operator  Class = "operator"  // the operator must act first
)

// Error is a failed operation on the cluster.
type Error struct {
	Op    string // what was being done: "drain"
	Node  string // the node or object concerned; "" where there is none
	Class Class
	Err   error
}

// Error says what failed, on what, and why.
func (e *Error) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Node, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// UnreachableError says that no endpoint gave a connection to an API server, and why for each.
type UnreachableError struct {
	Endpoints []string // IDs, in the order they were tried
	Errs      []error  // one for each
}

// Error names every endpoint and its problem.
func (e *UnreachableError) Error() string {
	parts := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		parts[i] = fmt.Sprintf("through %s: %v", e.Endpoints[i], err)
	}
	return "no API server could be reached: " + strings.Join(parts, "; ")
}

// Unwrap gives the problems of all endpoints.
func (e *UnreachableError) Unwrap() []error { return e.Errs }

// Wrap wraps an error with what was being done, and with its class. It returns nil for nil.
func Wrap(op, node string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Node: node, Class: Classify(err), Err: err}
}

// Classify returns an error's class: that of the outermost *Error in its chain, else what the API's status or the
// network's error says. An error that nothing is known about is Terminal.
func Classify(err error) Class {
	var classed *Error
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return ""
	case errors.As(err, &classed):
		return classed.Class
	case errors.As(err, &status):
		return classifyStatus(err)
	case errors.Is(err, context.DeadlineExceeded):
		return Transient
	case errors.Is(err, context.Canceled):
		return Terminal
	}
	return classifyNetwork(err)
}

// classifyStatus takes "forbidden" for transient: we are the administrator, to whom only an API server that has just
// started, and has not read its rules yet, forbids anything.
func classifyStatus(err error) Class {
	for _, transient := range []func(error) bool{
		apierrors.IsConflict, apierrors.IsForbidden, apierrors.IsInternalError, apierrors.IsResourceExpired,
		apierrors.IsServerTimeout, apierrors.IsGone,
		apierrors.IsServiceUnavailable, apierrors.IsTimeout, apierrors.IsTooManyRequests,
		apierrors.IsUnexpectedServerError,
	} {
		if transient(err) {
			return Transient
		}
	}
	return Terminal
}

// classifyNetwork is Terminal for a server that is not the one the kubeconfig means, and Transient for every other
// failure of a connection, since servers restart.
func classifyNetwork(err error) Class {
	var unreachable *UnreachableError
	if errors.As(err, &unreachable) {
		for _, one := range unreachable.Errs {
			if !isUntrusted(one) {
				return Transient
			}
		}
		return Terminal
	}
	var network net.Error
	var request *url.Error
	if !isUntrusted(err) && (errors.As(err, &network) || errors.As(err, &request) || isCut(err)) {
		return Transient
	}
	return Terminal
}

func isUntrusted(err error) bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &untrusted)
}
