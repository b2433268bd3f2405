// Package apicall is shared by all calls to the cluster API. It provides the field manager, timeouts, retries, waits
// for conditions, and errors.
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

// FieldManager is the field manager that kubeone uses for its writes.
const FieldManager = "kubeone"

// RunIDAnnotation is the annotation with the ID of the run that wrote an object.
const RunIDAnnotation = "kubeone.k8c.io/run-id"

// Class says what can be done about an error.
type Class string

// Classes of errors. The zero value means no error.
const (
	Transient Class = "transient" // the same call may succeed soon
	Terminal  Class = "terminal"  // the same call will fail again
	Operator  Class = "operator"  // the operator must act first
)

// Error reports a failed operation on the cluster.
type Error struct {
	Op    string // what was being done: "drain"
	Node  string // the node or object; "" if there is none
	Class Class
	Err   error
}

// Error returns the operation, the node and the cause.
func (e *Error) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Node, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// UnreachableError reports that no API server could be reached through any endpoint.
type UnreachableError struct {
	Endpoints []string // IDs, in the order they were tried
	Errs      []error  // by endpoint
}

// Error returns the error of every endpoint.
func (e *UnreachableError) Error() string {
	parts := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		parts[i] = fmt.Sprintf("through %s: %v", e.Endpoints[i], err)
	}
	return "no API server could be reached: " + strings.Join(parts, "; ")
}

// Unwrap returns the errors of all endpoints.
func (e *UnreachableError) Unwrap() []error { return e.Errs }

// Wrap returns an *Error with the operation, the node, and the class of err. It returns nil if err is nil.
func Wrap(op, node string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Node: node, Class: Classify(err), Err: err}
}

// Classify returns the class of the outermost *Error in the chain. If there is none, it derives the class from the API
// status or the network error. Any other error is Terminal. The class of nil is "".
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

// classifyStatus returns the class of an API status. It treats "forbidden" as Transient: the client is an
// administrator, and only an API server that has just started, and has not read its RBAC rules yet, rejects it.
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

// classifyNetwork returns Terminal if the server certificate does not match the CA in the kubeconfig. It returns
// Transient for other connection errors, because servers restart.
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
	if !isUntrusted(err) && (errors.As(err, &network) || errors.As(err, &request) || isConnectionLost(err)) {
		return Transient
	}
	return Terminal
}

func isUntrusted(err error) bool {
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &untrusted)
}
