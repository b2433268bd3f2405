package v1beta2

// Where a hook runs.
const (
	HookOnOperator = "operator"
	HookOnHost     = "host"
)

// Hook is a command that runs before or after an activity.
type Hook struct {
	// Name identifies the hook in plans, messages and KUBEONE_HOOK: lower-case letters, digits and dashes. Required,
	// and unique.
	Name string `json:"name"`
	// Before runs the hook before apply, install, join, upgrade, drain, reconfigure or reset; see
	// [hooks](operations.md#hooks). Exactly one of before, after and onFailure must be set.
	Before string `json:"before,omitempty"`
	// After runs the hook after one of these activities has succeeded.
	After string `json:"after,omitempty"`
	// OnFailure runs the hook on the operator's machine when a run has failed. Such a hook is not part of the plan, and
	// its own failure is a warning. Default: false.
	OnFailure bool `json:"onFailure,omitempty"`
	// RunOn is where the hook runs: operator (the machine that runs kubeone, in the manifest's folder) or host (the
	// host concerned, as root). Hooks around apply and after a reset run on the operator's machine. Default: operator.
	RunOn string `json:"runOn,omitempty"`
	// Command is the program and its arguments; no shell interprets them. Plans and the history show it, so it must not
	// hold a secret. Required.
	Command []string `json:"command"`
	// Timeout is how long the hook may run, as a Go duration of whole seconds from 1s to 1h. After that, kubeone kills
	// it and treats it as failed. Default: 5m.
	Timeout string `json:"timeout,omitempty"`
}
