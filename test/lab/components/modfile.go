package components

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// upstreamModule is what `go mod edit -json` tells of a module's go.mod, as far as it matters here.
type upstreamModule struct {
	Replace []struct {
		Old struct{ Path, Version string }
		New struct{ Path, Version string }
	}
	Godebug []struct{ Key, Value string }
}

// moduleFile returns the go.mod of the module in which a recipe is built. It requires the recipe's module, and repeats
// that module's own replace and godebug directives (editJSON), which the go command heeds only in a main module.
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
		path, version := replace.New.Path, replace.New.Version
		if version == "" {
			if path, version = published(r, replace.Old.Path, path); version == "" {
				continue
			}
		}
		old := strings.TrimSpace(replace.Old.Path + " " + replace.Old.Version)
		lines = append(lines, fmt.Sprintf("replace %s => %s %s\n", old, path, version))
	}
	sort.Strings(lines)
	text.WriteString(strings.Join(lines, ""))
	return []byte(text.String()), nil
}

// published says under which path and version a module that upstream keeps in a folder of its own is
// published. Kubernetes' staging modules are v0.X.Y where Kubernetes is v1.X.Y; others are named by the
// require directives already.
func published(r Recipe, module, folder string) (path, version string) {
	if r.Module != "k8s.io/kubernetes" || !strings.HasPrefix(folder, "./staging/") {
		return "", ""
	}
	return module, "v0." + strings.TrimPrefix(r.Version, "v1.")
}
