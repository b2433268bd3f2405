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
			f.errorf(Item(at+".command", 0), "use an absolute path",
				"%q is in the manifest directory, which does not exist on hosts", c[0])
		}
	}
}

func (f *findings) hookName(path, name string, seen map[string]int, i int) {
	first, known := seen[name]
	switch {
	case name == "":
		f.missing(path, "plans and messages refer to the hook by its name")
	case len(validation.IsDNS1123Label(name)) > 0:
		f.errorf(path, "use lowercase letters, digits and dashes", "%q is not a DNS-1123 label", name)
	case known:
		f.errorf(path, "rename one of them", "%q is already the name of hooks[%d]", name, first)
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
		f.errorf(at+".onFailure", "write two hooks", "cannot be combined with %s", path[len(at)+1:])
	case h.OnFailure:
	case h.Before == "" && h.After == "":
		f.missing(at, "set onFailure, or set before or after to one of: "+strings.Join(hookActivities(), ", "))
	case h.Before != "" && h.After != "":
		f.errorf(at+".after", "write two hooks", "cannot be combined with before")
	case !slices.Contains(hookActivities(), activity):
		f.errorf(path, "use one of: "+strings.Join(hookActivities(), ", "), "%q is not supported", activity)
	}
	switch {
	case h.RunOn != HookOnOperator && h.RunOn != HookOnHost:
		f.errorf(at+".runOn", "use one of: "+HookOnOperator+", "+HookOnHost, "%q is not supported", h.RunOn)
	case h.RunOn == HookOnHost && h.OnFailure:
		f.errorf(at+".runOn", "use runOn: operator", "onFailure hooks run only on the operator's machine")
	case h.RunOn == HookOnHost && activity == HookApply:
		f.errorf(at+".runOn", "use runOn: operator", "hooks before and after apply run only on the operator's machine")
	case h.RunOn == HookOnHost && h.After == HookReset:
		f.errorf(at+".runOn", "use runOn: operator, or before: reset",
			"after a reset, the host can no longer run hooks")
	}
}

func (f *findings) hookCommand(path string, command []string) {
	if len(command) == 0 || strings.TrimSpace(command[0]) == "" {
		f.missing(path, "list the program and its arguments")
		return
	}
	for i, word := range command {
		unseen := func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsControl(r) }
		if strings.ContainsFunc(word, unseen) {
			f.errorf(Item(path, i), "write it to a file that the command reads", "%q contains an invisible character",
				word)
		}
	}
}
