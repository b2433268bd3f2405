package v1beta2

// Where a hook runs.
const (
	HookOnOperator = "operator"
	HookOnHost     = "host"
)

// Hook is a command that runs before or after something is done: to take a host out of a load balancer before it is
// drained, say, and to put it back after its upgrade. It is part of the plan. A run that was interrupted may run it
// again.
type Hook struct {
	// Name is what plans, messages and KUBEONE_HOOK call it: lower-case letters, digits and dashes. Required, and
	// another one for each hook.
	Name string `json:"name"`
	// Before says that it runs before apply, install, join, upgrade, drain, reconfigure or reset; see
	// docs/operations.md. Exactly one of before, after and onFailure must be set.
	Before string `json:"before,omitempty"`
	// After says after which of them it runs, once that has succeeded.
	After string `json:"after,omitempty"`
	// OnFailure says that it runs on the operator's machine when a run has failed, to tell of it. It is no part of the
	// plan, and its own failure is a warning. Default: false.
	OnFailure bool `json:"onFailure,omitempty"`
	// RunOn is where it runs: operator, the machine on which kubeone runs, in the manifest's folder; or host, the host
	// that it is about, as root. Around apply it runs on the operator's machine, and after a reset too. Default:
	// operator.
	RunOn string `json:"runOn,omitempty"`
	// Command is the program and its arguments, which no shell looks at. It is shown in plans and kept in the history,
	// so it must hold no secret. Required.
	Command []string `json:"command"`
	// Timeout is how long it may take, as a Go duration of whole seconds from 1s to 1h; then it is killed, and has
	// failed. Default: 5m.
	Timeout string `json:"timeout,omitempty"`
}
