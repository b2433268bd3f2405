package componentconfig

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/model/desired"

	"sigs.k8s.io/yaml"
)

// extraFlags returns the flags from the extras of a component.
func extraFlags(want desired.Cluster, component string) map[string]string {
	flags := map[string]string{}
	for _, e := range want.Extras {
		if e.Component != component {
			continue
		}
		for name, value := range e.Flags {
			flags[name] = value
		}
	}
	if f := admissionFile(want); f != nil && component == desired.APIServer {
		flags["admission-control-config-file"] = f.Path
	}
	return flags
}

// admissionPlugins returns the names of the plugins that extras enable, sorted.
func admissionPlugins(want desired.Cluster) []string {
	var out []string
	for _, e := range want.Extras {
		for _, p := range e.Plugins {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// admissionFile returns the file that lists the configurations of admission plugins, in the same directory; nil if no
// plugin has any.
func admissionFile(want desired.Cluster) *desired.ComponentFile {
	var plugins []object
	for _, e := range want.Extras {
		for _, p := range e.Plugins {
			if p.Config != nil {
				plugins = append(plugins, object{"name": p.Name, "path": p.Config.Base()})
			}
		}
	}
	if len(plugins) == 0 {
		return nil
	}
	slices.SortFunc(plugins, func(a, b object) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	text, err := yaml.Marshal(object{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins,
	})
	if err != nil {
		panic("admission configuration: " + err.Error()) // strings only
	}
	f := desired.NewComponentFile(desired.APIServer, "admission.yaml", string(text))
	return &f
}

// filesOf returns the files that a component reads because of its extras.
func filesOf(want desired.Cluster, component string) []desired.ComponentFile {
	var out []desired.ComponentFile
	for _, e := range want.Extras {
		if e.Component != component {
			continue
		}
		out = append(out, e.Files...)
		for _, p := range e.Plugins {
			if p.Config != nil {
				out = append(out, *p.Config)
			}
		}
	}
	if f := admissionFile(want); f != nil && component == desired.APIServer {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b desired.ComponentFile) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(out, func(a, b desired.ComponentFile) bool { return a.Path == b.Path })
}

// directoriesOf returns the host's directories that a component writes to because of its extras, sorted.
func directoriesOf(want desired.Cluster, component string) []string {
	var out []string
	for _, e := range want.Extras {
		if e.Component == component {
			out = append(out, e.Directories...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// extraVolumes returns the directories that a component mounts because of its extras, each at its path on the host.
func extraVolumes(want desired.Cluster, component string) []object {
	var out []object
	if len(filesOf(want, component)) > 0 {
		dir := desired.ComponentDir(component)
		out = append(out, object{
			"name": "kubeone", "hostPath": dir, "mountPath": dir, "readOnly": true, "pathType": "Directory",
		})
	}
	for i, dir := range directoriesOf(want, component) {
		out = append(out, object{
			"name": fmt.Sprintf("kubeone-%d", i), "hostPath": dir, "mountPath": dir, "pathType": "DirectoryOrCreate",
		})
	}
	return out
}

// componentsWithExtras returns the components that extras are for.
func componentsWithExtras() []string {
	return []string{desired.APIServer, desired.ControllerManager, desired.Scheduler}
}

// ComponentFiles returns all files of extras on the host; a worker has none.
func ComponentFiles(in Input) []desired.ComponentFile {
	if in.Host.Role != desired.ControlPlane {
		return nil
	}
	var out []desired.ComponentFile
	for _, c := range componentsWithExtras() {
		out = append(out, filesOf(in.Want, c)...)
	}
	return out
}

// ComponentFileLines returns lines "PATH SHA256 FUNCTION"; the function is "secret" if the content is.
func ComponentFileLines(in Input) [][]string {
	var lines [][]string
	for i, f := range ComponentFiles(in) {
		function := fmt.Sprintf("file_component_%d", i)
		if f.Secret {
			function = "secret"
		}
		lines = append(lines, []string{f.Path, f.Digest, function})
	}
	return lines
}

// ComponentDirectories returns all directories of extras on the host.
func ComponentDirectories(in Input) []string {
	if in.Host.Role != desired.ControlPlane {
		return nil
	}
	var out []string
	for _, c := range componentsWithExtras() {
		out = append(out, directoriesOf(in.Want, c)...)
	}
	return out
}

// ExemptNamespaces returns the namespaces whose pods run on any node, despite a default node selector; nil if there is
// no such selector.
func ExemptNamespaces(in Input) []string {
	if !in.Want.LimitsNodes() {
		return nil
	}
	return slices.Concat([]string{"kube-system"}, in.Network.Namespaces, []string{"kubeone-system"})
}
