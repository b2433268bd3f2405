package folder

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// Values are the values that templates can read, under the names that KubeOne gives them.
type Values struct {
	// Config is the manifest with defaults, for example {{ .Config.Versions.Kubernetes }}.
	Config any
	// Params are the global parameters, overridden by the addon's own.
	Params map[string]string
	// CustomCredentials are customSecrets of the credentials file.
	CustomCredentials map[string]string
	// CCMClusterName is the name of the cluster.
	CCMClusterName string
	// CABundle is the PEM text of caBundle; "" if there is none.
	CABundle string
	// OverwriteRegistry replaces the registry of images; "" keeps it.
	OverwriteRegistry string
}

// withParams returns the values with the parameters of one addon.
func (v Values) withParams(params map[string]string) Values {
	merged := maps.Clone(v.Params)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, params)
	v.Params = merged
	return v
}

const maxRepeats = 100_000 // items that a function may produce

// removedFunctions are sprig functions that read the environment or the network of the operator's machine.
var removedFunctions = []string{"env", "expandenv", "getHostByName"}

// templateFunctions returns the functions of templates: those of sprig except removedFunctions, and KubeOne's.
func templateFunctions(v Values) template.FuncMap {
	out := sprig.TxtFuncMap()
	for _, name := range removedFunctions {
		delete(out, name)
	}
	limitRepeats(out)
	out["required"] = requireValue
	out["Registry"] = func(registry string) string {
		if v.OverwriteRegistry != "" {
			return v.OverwriteRegistry
		}
		return registry
	}
	return out
}

// limitRepeats replaces the functions that can produce any number of items from a few characters.
func limitRepeats(out template.FuncMap) {
	out["until"] = func(count int) ([]int, error) {
		if count < 0 {
			return countSteps(0, count, -1)
		}
		return countSteps(0, count, 1)
	}
	out["untilStep"] = countSteps
	out["repeat"] = func(count int, text string) (string, error) {
		if count < 0 || count > maxRepeats {
			return "", fmt.Errorf("repeat: the count must be between 0 and %d", maxRepeats)
		}
		return strings.Repeat(text, count), nil
	}
}

// countSteps returns start, start+step, … before stop, as sprig's untilStep does.
func countSteps(start, stop, step int) ([]int, error) {
	var out []int
	if step == 0 {
		return out, nil
	}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if out = append(out, i); len(out) > maxRepeats {
			return nil, fmt.Errorf("more than %d steps", maxRepeats)
		}
	}
	return out, nil
}

// requireValue returns the value, or an error with the message if the value is missing or an empty string.
func requireValue(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, errors.New(message)
	}
	return value, nil
}
