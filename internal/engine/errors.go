package engine

import (
	"errors"

	"kubeone/internal/decide/fsm"
)

// ErrWorldChanged means that between the plan's approval and its start the world became another.
var ErrWorldChanged = errors.New("the plan that was approved is not the plan that would run now: " +
	"something changed in between; plan again")

// ConfigError is a mistake in what was given: manifest, flags, bundle, request. Nothing was changed.
type ConfigError struct{ Err error }

// Error is the cause's text.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// ReleaseError is a *ConfigError's cause where releases cannot be used: none has what is wanted, or one is not what it
// was. It is of no host.
type ReleaseError struct{ Err error }

// Error is the cause's text.
func (e *ReleaseError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ReleaseError) Unwrap() error { return e.Err }

// BlockedError says that a plan must not, or cannot, be carried out. Nothing was changed.
type BlockedError struct {
	Route fsm.Route
	Why   string
}

// Error says why.
func (e *BlockedError) Error() string { return e.Why + "; nothing was changed" }

// UnresolvedError says that a plan cannot be carried out, because it is not known what its hosts would be given: a
// download location did not answer. Nothing was changed. It wraps the causes, each a *release.FetchError.
type UnresolvedError struct{ Err error }

// Error says what could not be found out.
func (e *UnresolvedError) Error() string {
	return e.Err.Error() + "\nWhat the hosts would be given is not known; nothing was changed"
}

// Unwrap returns the causes.
func (e *UnresolvedError) Unwrap() error { return e.Err }

// EtcdError is a failure of etcd, or of what was asked of it. Nothing is lost by it.
type EtcdError struct{ Err error }

// Error is the cause's text.
func (e *EtcdError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EtcdError) Unwrap() error { return e.Err }
