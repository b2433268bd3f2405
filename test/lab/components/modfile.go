package components

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// upstreamModule holds the relevant output of `go mod edit -json`.
type upstreamModule struct {
	Replace []struct {
		Old struct{ Path, Version string }
		New struct{ Path, Version string }
	}
	Godebug []struct{ Key, Value string }
}

// moduleFile returns the go.mod for the build of a recipe. It requires the recipe's module and repeats that module's
// replace and godebug directives (editJSON). The go command honors them only in a main module.
func moduleFile(r Recipe, editJSON []byte) ([]byte, error) {
	var upstream upstreamModule
	if err := json.Unmarshal(editJSON, &upstream); err != nil {
		return nil, fmt.Errorf("read go.mod of %s@%s: %w", r.Module, r.Version, err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "module build\n\ngo %s\n\n", goVersion)
	for _, setting := range upstream.Godebug {
		fmt.Fprintf(&text, "godebug %s=%s\n", setting.Key, setting.Value)
	}
	fmt.Fprintf(&text, "require %s %s\n", r.Module, r.Version)
	for _, also := range r.Also {
		path, version, _ := strings.Cut(also, "@")
		fmt.Fprintf(&text, "require %s %s\n", path, version)
	}
	var lines []string
	for _, replace := range upstream.Replace {
		if slices.Contains(r.Unreplaced, replace.Old.Path) {
			continue
		}
		path, version := replace.New.Path, replace.New.Version
		if version == "" {
			if path, version = publishedModule(r, replace.Old.Path, path); version == "" {
				continue
			}
		}
		old := strings.TrimSpace(replace.Old.Path + " " + replace.Old.Version)
		lines = append(lines, fmt.Sprintf("replace %s => %s %s\n", old, path, version))
	}
	for module := range r.Stubs {
		lines = append(lines, fmt.Sprintf("replace %s => ./%s\n", module, stubFolder(module)))
	}
	sort.Strings(lines)
	text.WriteString(strings.Join(lines, ""))
	return []byte(text.String()), nil
}

// stubFolder returns the folder of a stub beside the go.mod of the build.
func stubFolder(module string) string { return "stubs/" + module }

// publishedModule returns the published path and version of a module in a folder of its upstream repository.
// Kubernetes' staging modules are v0.X.Y for Kubernetes v1.X.Y. The require directives name the others already.
func publishedModule(r Recipe, module, folder string) (path, version string) {
	if r.Module != "k8s.io/kubernetes" || !strings.HasPrefix(folder, "./staging/") {
		return "", ""
	}
	return module, "v0." + strings.TrimPrefix(r.Version, "v1.")
}
