package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"kubeone/api/cluster/v1alpha1"
	kubeonev1alpha1 "kubeone/api/kubeone/v1alpha1"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/manifest/objects"
)

// isObject reports whether a document is an object of the Machine API, or a list of objects.
func isObject(document *yaml.Node) bool {
	switch objectVersion(document) {
	case v1alpha1.GroupVersion().String(), kubeonev1alpha1.GroupVersion().String():
		return true
	case "v1":
		return objectKind(document) == "List"
	}
	return false
}

func objectVersion(document *yaml.Node) string { return scalarField(document, "apiVersion") }

func objectKind(document *yaml.Node) string { return scalarField(document, "kind") }

// scalarField returns the text of a field; "" if the node has no such text.
func scalarField(n *yaml.Node, name string) string {
	if value := fieldValue(n, name); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
	}
	return ""
}

// objectReader reads the objects of a file.
type objectReader struct {
	*loader

	objects  objects.Objects
	cluster  *objectDocument
	machines []*objectDocument
	others   []*objectDocument
	names    map[string]int // lines, by kind, namespace and name
}

// objectDocument is the document of an object.
type objectDocument struct {
	node  *yaml.Node
	where positions // by the path in the object
	// explained are paths in the object with a reported problem.
	explained []string
}

// readObjects reads a Cluster with its Machines and what else belongs to it. It returns false if no further checks are
// possible.
func (l *loader) readObjects(documents []*yaml.Node) bool {
	if l.TerraformPath != "" {
		l.found = append(l.found, Problem{File: l.ManifestPath, Severity: Error,
			Message: "objects cannot be combined with the output of Terraform",
			Hint:    "write the hosts as Machines, or use a KubeOneCluster manifest"})
		return false
	}
	r := &objectReader{loader: l, names: map[string]int{}}
	for _, document := range documents {
		r.readDocument(document)
	}
	if r.cluster == nil {
		l.found = append(l.found, Problem{File: l.ManifestPath, Line: documents[0].Line, Severity: Error,
			Message: "the file has no Cluster", Hint: "add an object of the kind Cluster, " + v1alpha1.GroupVersion().String()})
		return false
	}
	r.convert()
	return true
}

func (r *objectReader) readDocument(n *yaml.Node) {
	kind, version := objectKind(n), objectVersion(n)
	switch {
	case kind == "List" && version == "v1":
		if items := fieldValue(n, "items"); items != nil && items.Kind == yaml.SequenceNode {
			for _, item := range items.Content {
				r.readDocument(resolveAlias(item))
			}
		}
	case kind == v1beta2.Kind:
		r.reportNode(n, "describe the cluster either by objects or by a manifest",
			"the file has objects and a %s manifest", v1beta2.Kind)
	case kind == "Cluster" && version == v1alpha1.GroupVersion().String():
		r.readCluster(n)
	case kind == "Machine" && isStatic(n):
		r.readMachine(n)
	default:
		r.readOther(n, kind, version)
	}
}

func (r *objectReader) reportNode(n *yaml.Node, hint, format string, args ...any) {
	r.found = append(r.found, Problem{
		File: r.ManifestPath, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...), Hint: hint,
		Severity: Error,
	})
}

// isStatic reports whether a Machine has the provider static.
func isStatic(machine *yaml.Node) bool {
	n := machine
	for _, name := range []string{"spec", "providerSpec", "value"} {
		if n = fieldValue(n, name); n == nil {
			return false
		}
	}
	return scalarField(n, "cloudProvider") == v1alpha1.ProviderStatic
}

func (r *objectReader) readCluster(n *yaml.Node) {
	if r.cluster != nil {
		r.reportNode(n, "keep one of them", "the file has a second Cluster; the first one is on line %d", r.cluster.node.Line)
		return
	}
	r.cluster = r.decodeObject(n, "Cluster", reflect.ValueOf(&r.objects.Cluster).Elem())
	r.checkMetadata(n, r.objects.Cluster.Metadata, true)
}

func (r *objectReader) readMachine(n *yaml.Node) {
	var machine objects.Machine
	document := r.decodeObject(n, "Machine", reflect.ValueOf(&machine).Elem())
	r.checkMetadata(n, machine.Metadata, true)
	r.machines = append(r.machines, document)
	r.objects.Machines = append(r.objects.Machines, machine)
}

// decodeObject decodes an object, and reports unknown fields and values of a wrong type.
func (r *objectReader) decodeObject(n *yaml.Node, kind string, into reflect.Value) *objectDocument {
	document := &objectDocument{node: n, where: positions{}}
	before := len(r.explained)
	d := &decoder{
		loader: r.loader, file: r.ManifestPath, where: document.where, what: "field of a " + kind, nulls: true,
		root: into.Type(),
	}
	d.decodeValue(place{node: n}, n, into)
	document.explained = slices.Clone(r.explained[before:])
	r.explained = r.explained[:before]
	return document
}

// checkMetadata reports an object without a name, with the name of another one, or in a wrong namespace. Machines of
// the provider static belong in the namespace of the Cluster.
func (r *objectReader) checkMetadata(n *yaml.Node, m objects.Metadata, fixed bool) {
	if m.Name == "" {
		r.reportNode(n, "", "metadata.name is required")
		return
	}
	if fixed && m.Namespace != "" && m.Namespace != objects.Namespace {
		r.reportNode(n, "write namespace: "+objects.Namespace, "the namespace %q is not supported", m.Namespace)
	}
	key := strings.Join([]string{objectKind(n), m.Namespace, m.Name}, "/")
	if line, twice := r.names[key]; twice {
		r.reportNode(n, "rename or remove one of them", "the %s %s is already on line %d", objectKind(n), m.Name, line)
	}
	r.names[key] = n.Line
}

// readOther reads an object that the Cluster does not describe.
func (r *objectReader) readOther(n *yaml.Node, kind, version string) {
	newObject := map[string]func() any{
		v1alpha1.GroupVersion().String() + "/Machine":           func() any { return &v1alpha1.Machine{} },
		v1alpha1.GroupVersion().String() + "/MachineSet":        func() any { return &v1alpha1.MachineSet{} },
		v1alpha1.GroupVersion().String() + "/MachineDeployment": func() any { return &v1alpha1.MachineDeployment{} },
		kubeonev1alpha1.GroupVersion().String() + "/Host":       func() any { return &kubeonev1alpha1.Host{} },
	}[version+"/"+kind]
	if newObject == nil {
		r.reportNode(n, "a file of objects can have one Cluster, and Machines, MachineSets, MachineDeployments and Hosts",
			"the kind %q of %q is not supported", kind, version)
		return
	}
	var object map[string]any
	document := r.decodeObject(n, kind, reflect.ValueOf(&object).Elem())
	if len(document.explained) > 0 {
		return
	}
	text, err := json.Marshal(object)
	if err != nil {
		r.reportNode(n, "", "%s", err)
		return
	}
	strict, err := kjson.UnmarshalStrict(text, newObject())
	if err != nil {
		strict = append(strict, err)
	}
	for _, problem := range strict {
		r.reportNode(n, "", "%s: %s", kind, problem)
	}
	var m struct{ Metadata objects.Metadata }
	if err := json.Unmarshal(text, &m); err == nil {
		r.checkMetadata(n, m.Metadata, false)
	}
	if metadata, ok := object["metadata"].(map[string]any); ok && m.Metadata.Namespace == "" && kind != "Host" {
		metadata["namespace"] = objects.Namespace
	}
	r.others = append(r.others, document)
	r.objects.Others = append(r.objects.Others, object)
}

// convert turns the objects into a manifest, with the positions of its parts.
func (r *objectReader) convert() {
	all := slices.Concat(r.machines, r.others)
	document := func(index int) *objectDocument {
		if index == objects.ClusterIndex {
			return r.cluster
		}
		return all[index]
	}
	if !slices.ContainsFunc(r.objects.Machines, isMaster) {
		r.reportNode(r.cluster.node, "add a Machine of the provider static with roles: [Master] for each control-plane host",
			"the file has no Machine with the role Master")
		r.explained = append(r.explained, controlPlanePath)
	}
	converted := r.objects.Manifest()
	for _, p := range converted.Problems {
		at := document(p.Object).where.findPosition(p.Path)
		r.found = append(r.found, Problem{
			File: r.ManifestPath, Line: at.Line, Column: at.Column, Path: p.Path, Message: p.Message, Hint: p.Hint,
			Severity: Error,
		})
	}
	for _, source := range converted.Sources {
		from := document(source.Object)
		r.where.cutBelow(source.To)
		r.where[source.To] = from.where.findPosition(source.From)
		for path, at := range from.where {
			if rest, ok := strings.CutPrefix(path, source.From); ok && isAtOrBelow(path, source.From) {
				r.where[strings.TrimPrefix(source.To+rest, ".")] = at
			}
		}
		for _, path := range from.explained {
			if isAtOrBelow(path, source.From) {
				r.explained = append(r.explained, strings.TrimPrefix(source.To+strings.TrimPrefix(path, source.From), "."))
			}
		}
	}
	*r.loader.cluster = *converted.Manifest
	r.sources, r.fileObjects, r.otherObjects = converted.Sources, &r.objects, converted.Rest
}

func isMaster(m objects.Machine) bool { return slices.Contains(m.Spec.Roles, v1alpha1.MasterRole) }

// pathInObject returns the path in its object for a path in the manifest.
func (l *loader) pathInObject(path string) string {
	var best objects.Source
	for _, source := range l.sources {
		if isAtOrBelow(path, source.To) && len(source.To) >= len(best.To) {
			best = source
		}
	}
	rest := strings.TrimPrefix(path, best.To)
	if best.To == "" && rest != "" && rest[0] != '[' {
		rest = "." + rest
	}
	return strings.TrimPrefix(best.From+rest, ".")
}
