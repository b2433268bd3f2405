package v1beta2

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// longestHook is the maximum timeout of a hook. It is below the two hours after which a step on a host fails.
const longestHook = time.Hour

// The activities that hooks run around.
const (
	HookApply       = "apply"
	HookInstall     = "install"
	HookJoin        = "join"
	HookUpgrade     = "upgrade"
	HookDrain       = "drain"
	HookReconfigure = "reconfigure"
	HookReset       = "reset"
)

func hookActivities() []string {
	return []string{HookApply, HookInstall, HookJoin, HookUpgrade, HookDrain, HookReconfigure, HookReset}
}

func (f *findings) hooks(hooks []Hook) {
	seen := map[string]int{}
	for i, h := range hooks {
		at := Item("hooks", i)
		f.hookName(at+".name", h.Name, seen, i)
		f.hookMoment(at, h)
		f.hookCommand(at+".command", h.Command)
		f.every(at+".timeout", h.Timeout, time.Second, time.Second)
		if d, err := time.ParseDuration(h.Timeout); err == nil && d > longestHook {
			f.errorf(at+".timeout", "", "%s is too long: the maximum is %s", h.Timeout, longestHook)
		}
		if c := h.Command; h.RunOn == HookOnHost && len(c) > 0 && strings.Contains(c[0], "/") && c[0][0] != '/' {
			f.errorf(Item(at+".command", 0), "write the whole path",
				"%q is in the manifest's folder, which hosts do not have", c[0])
		}
	}
}

func (f *findings) hookName(path, name string, seen map[string]int, i int) {
	first, known := seen[name]
	switch {
	case name == "":
		f.missing(path, "plans and messages use it")
	case len(validation.IsDNS1123Label(name)) > 0:
		f.errorf(path, "use lower-case letters, digits and dashes", "%q is not a DNS-1123 label", name)
	case known:
		f.errorf(path, "give one of them another name", "%q is already hooks[%d]", name, first)
	default:
		seen[name] = i
	}
}

// hookMoment checks when and where a hook runs.
func (f *findings) hookMoment(at string, h Hook) {
	activity, path := h.Before, at+".before"
	if h.After != "" {
		activity, path = h.After, at+".after"
	}
	switch {
	case h.OnFailure && (h.Before != "" || h.After != ""):
		f.errorf(at+".onFailure", "write two hooks", "a hook runs %s, or when a run has failed", path[len(at)+1:])
	case h.OnFailure:
	case h.Before == "" && h.After == "":
		f.missing(at, "set before or after, to one of "+strings.Join(hookActivities(), ", ")+", or onFailure")
	case h.Before != "" && h.After != "":
		f.errorf(at+".after", "write two hooks", "a hook runs before something or after it, and before is set already")
	case !slices.Contains(hookActivities(), activity):
		f.errorf(path, "use one of "+strings.Join(hookActivities(), ", "), "%q is not known", activity)
	}
	switch {
	case h.RunOn != HookOnOperator && h.RunOn != HookOnHost:
		f.errorf(at+".runOn", "use one of "+HookOnOperator+", "+HookOnHost, "%q is not known", h.RunOn)
	case h.RunOn == HookOnHost && h.OnFailure:
		f.errorf(at+".runOn", "use runOn: operator", "onFailure hooks run on the operator's machine")
	case h.RunOn == HookOnHost && activity == HookApply:
		f.errorf(at+".runOn", "use runOn: operator", "hooks around apply run on the operator's machine")
	case h.RunOn == HookOnHost && h.After == HookReset:
		f.errorf(at+".runOn", "use runOn: operator, or before: reset",
			"after a reset, nothing is left on the host to run the hook")
	}
}

func (f *findings) hookCommand(path string, command []string) {
	if len(command) == 0 || strings.TrimSpace(command[0]) == "" {
		f.missing(path, "write the program and its arguments as a list")
		return
	}
	for i, word := range command {
		unseen := func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsControl(r) }
		if strings.ContainsFunc(word, unseen) {
			f.errorf(Item(path, i), "put it into a file that the command reads", "has an invisible character: %q", word)
		}
	}
}
