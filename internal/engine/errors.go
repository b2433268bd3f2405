package engine

import (
	"errors"

	"kubeone/internal/decide/fsm"
)

// ErrWorldChanged means that the world changed between the plan's approval and its start.
var ErrWorldChanged = errors.New("the approved plan is no longer the plan that would run: " +
	"something changed in between; plan again")

// ConfigError means that the manifest, a flag, a bundle or the request is invalid. Nothing was changed.
type ConfigError struct{ Err error }

// Error returns the cause's text.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// ReleaseError is the cause of a *ConfigError if a release is missing or has changed. It is not about a host.
type ReleaseError struct{ Err error }

// Error returns the cause's text.
func (e *ReleaseError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ReleaseError) Unwrap() error { return e.Err }

// BlockedError means that a plan must not or cannot be carried out. Nothing was changed.
type BlockedError struct {
	Route fsm.Route
	Why   string
}

// Error states the reason.
func (e *BlockedError) Error() string { return e.Why + "; nothing was changed" }

// UnresolvedError means that a plan cannot be carried out because a download location did not answer, so that the
// digests of its artifacts are unknown. Nothing was changed. It wraps the causes, each a *release.FetchError.
type UnresolvedError struct{ Err error }

// Error lists what could not be resolved.
func (e *UnresolvedError) Error() string {
	return e.Err.Error() + "\nWhat to install on the hosts is unknown; nothing was changed"
}

// Unwrap returns the causes.
func (e *UnresolvedError) Unwrap() error { return e.Err }

// EtcdError means that etcd or a request to it failed. No data is lost.
type EtcdError struct{ Err error }

// Error returns the cause's text.
func (e *EtcdError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EtcdError) Unwrap() error { return e.Err }
