package manifest

import (
	"fmt"
	"go.yaml.in/yaml/v3"
	"kubeone/api/kubeone/v1beta2"
	"reflect"
	"strings"
)

// The limits of decoding. A manifest with a thousand hosts has about 20,000 nodes, but a few lines with aliases can
// expand to many more.
const (
	maxNodes = 200_000
	maxDepth = 64
)

// decoder decodes the nodes of one file into Go values by their json tags. It reports each value of the wrong type and
// continues with the next one.
type decoder struct {
	*loader
	file  string
	root  reflect.Type
	where positions // by the path in the file
	what  string    // the term for a key in messages: "field of a manifest"
	nulls bool      // warn about nulls, because people write this file
	nodes int
	depth int
	// stopped is set when a limit has been exceeded and reported.
	stopped bool
}

// place is the current position: the path, the node whose line problems report, and whether values are secret.
type place struct {
	path   string
	node   *yaml.Node
	secret bool
}

func (d *decoder) addError(at place, hint, format string, args ...any) {
	d.addProblem(at, Error, hint, fmt.Sprintf(format, args...))
	d.explained = append(d.explained, at.path)
}

func (d *decoder) addProblem(at place, severity Severity, hint, message string) {
	d.found = append(d.found, Problem{
		File: d.file, Line: at.node.Line, Column: at.node.Column, Path: at.path,
		Message: message, Hint: hint, Severity: severity,
	})
}

// decodeValue decodes a node into v, which must be settable.
func (d *decoder) decodeValue(at place, n *yaml.Node, v reflect.Value) {
	if !d.enterNode(at) {
		return
	}
	defer d.leaveNode()
	if n.Kind == yaml.AliasNode {
		d.decodeValue(at, n.Alias, v)
		return
	}
	d.where[at.path] = position{File: d.file, Line: at.node.Line, Column: at.node.Column}
	if n.ShortTag() == "!!null" {
		d.warnOfNull(at, v)
		return
	}
	d.decodeByKind(at, n, v)
}

// enterNode counts a node and a level of nesting. If a limit is exceeded, it returns false and reports the problem
// once.
func (d *decoder) enterNode(at place) bool {
	if d.nodes < maxNodes && d.depth < maxDepth {
		d.nodes++
		d.depth++
		return true
	}
	if !d.stopped {
		d.addError(at, "", "is nested too deeply or contains too many repetitions")
	}
	d.stopped = true
	d.nodes = maxNodes
	return false
}

func (d *decoder) leaveNode() { d.depth-- }

func (d *decoder) decodeByKind(at place, n *yaml.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decodeByKind(at, n, v.Elem())
	case reflect.Struct:
		d.decodeStruct(at, n, v)
	case reflect.Map:
		d.decodeMapping(at, n, v)
	case reflect.Slice:
		d.decodeList(at, n, v)
	case reflect.Interface:
		d.decodeAny(at, n, v)
	default:
		d.decodeScalar(at, n, v)
	}
}

// warnOfNull warns about a field without a value, such as "external:", where "external: {}" is probably meant. A YAML
// null leaves the field unset.
func (d *decoder) warnOfNull(at place, v reflect.Value) {
	if d.nulls && v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
		d.addProblem(at, Warning, "to set it, write {} after the colon", "has no value, so it is not set")
	}
}

func (d *decoder) decodeStruct(at place, n *yaml.Node, v reflect.Value) {
	pairs, ok := d.mappingPairs(at, n)
	if !ok {
		return
	}
	fields := map[string]reflect.StructField{}
	var names []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		if name := v1beta2.JSONName(f); !f.Anonymous && name != "" {
			fields[name] = f
			names = append(names, name)
		}
	}
	for _, p := range pairs {
		f, known := fields[p.key.Value]
		if !known {
			d.addUnknownField(at, p.key, names)
			continue
		}
		child := at.childPlace(p)
		child.secret = at.secret || f.Tag.Get("secret") != ""
		d.decodeValue(child, p.value, v.FieldByIndex(f.Index))
	}
}

// addUnknownField reports an unknown field and suggests a similar one.
func (d *decoder) addUnknownField(at place, key *yaml.Node, names []string) {
	child := place{path: v1beta2.Child(at.path, key.Value), node: key}
	var hint string
	if near := suggestName(key.Value, names); near != "" {
		hint = "did you mean " + near + "?"
		d.explained = append(d.explained, v1beta2.Child(at.path, near))
	} else if child.path == "features.podPresets" {
		hint = "remove it; Kubernetes 1.20 removed PodPresets"
	} else if paths := pathsWithName(d.root, key.Value); len(paths) > 0 {
		hint = "did you mean " + strings.Join(paths, " or ") + "?"
	} else if len(names) > 0 && len(names) <= 8 {
		hint = "known fields: " + strings.Join(names, ", ")
	}
	d.addError(child, hint, "is not a %s", d.what)
}

func (d *decoder) decodeMapping(at place, n *yaml.Node, v reflect.Value) {
	pairs, ok := d.mappingPairs(at, n)
	if !ok {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(pairs)))
	for _, p := range pairs {
		value := reflect.New(v.Type().Elem()).Elem()
		d.decodeValue(at.childPlace(p), p.value, value)
		v.SetMapIndex(reflect.ValueOf(p.key.Value).Convert(v.Type().Key()), value)
	}
}

func (d *decoder) decodeList(at place, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		hint := "start each item with a dash"
		if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
			hint = "write [] for an empty list"
		}
		d.addError(at, hint, "expected a list, got %s", describeNode(n, at.secret))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		child := place{path: v1beta2.Item(at.path, i), node: item, secret: at.secret}
		if d.nulls && item.ShortTag() == "!!null" {
			d.addError(child, "remove the dash, or write a value after it", "the item is empty")
			continue
		}
		d.decodeValue(child, item, v.Index(i))
	}
}

// decodeAny decodes a value of unknown structure: a map, list, string, number or boolean.
func (d *decoder) decodeAny(at place, n *yaml.Node, v reflect.Value) {
	switch n.Kind {
	case yaml.MappingNode:
		m := reflect.New(reflect.TypeFor[map[string]any]()).Elem()
		d.decodeMapping(at, n, m)
		v.Set(m)
	case yaml.SequenceNode:
		s := reflect.New(reflect.TypeFor[[]any]()).Elem()
		d.decodeList(at, n, s)
		v.Set(s)
	default:
		d.decodeAnyScalar(at, n, v)
	}
}

// isNull reports whether a node is null or the zero Node.
func isNull(n *yaml.Node) bool { return n.ShortTag() == "!!null" }

// fieldValue returns the value of a field in a mapping, or nil if it is not set. It follows aliases and merge keys.
func fieldValue(n *yaml.Node, name string) *yaml.Node {
	return findFieldValue(n, name, map[*yaml.Node]bool{})
}

// findFieldValue implements fieldValue. The keys of a mapping take precedence over merged keys, and earlier merges take
// precedence over later ones. seen holds the mappings that were already searched, because a few lines can merge the
// same mapping very often.
func findFieldValue(n *yaml.Node, name string, seen map[*yaml.Node]bool) *yaml.Node {
	if n = resolveAlias(n); n.Kind != yaml.MappingNode || seen[n] {
		return nil
	}
	seen[n] = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == name {
			return resolveAlias(n.Content[i+1])
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != "!!merge" {
			continue
		}
		for _, source := range mergeSources(n.Content[i+1]) {
			if found := findFieldValue(source, name, seen); found != nil {
				return found
			}
		}
	}
	return nil
}

// mergeSources returns the mappings that a merge key refers to: a single one, or those in a list.
func mergeSources(n *yaml.Node) []*yaml.Node {
	if n = resolveAlias(n); n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// resolveAlias returns the node that an alias refers to, or the node itself if it is not an alias.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // the parser never makes this an alias
	}
	return n
}

// position is the position of a value in a file.
type position struct {
	File         string
	Line, Column int
	// Path is the path in the file; "" means that it is the same as in the manifest.
	Path string
}

// positions maps paths in the manifest to the positions of their values.
type positions map[string]position

// findPosition returns the position of a path or, if it has none, of its nearest ancestor. The zero position means
// there is none.
func (p positions) findPosition(path string) position {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at
		}
		path = parentPath(path)
	}
}

// cutBelow removes the positions at and below a path. It returns them, with their paths relative to that path.
func (p positions) cutBelow(path string) positions {
	out := positions{}
	for at, where := range p {
		if isAtOrBelow(at, path) {
			out[strings.TrimPrefix(at, path)] = where
			delete(p, at)
		}
	}
	return out
}

// putBelow adds positions whose paths are relative to the given path.
func (p positions) putBelow(path string, below positions) {
	for rest, where := range below {
		p[path+rest] = where
	}
}

// isAtOrBelow reports whether path is the same as parent or below it. Every path is below "".
func isAtOrBelow(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || parent == "")
}

// parentPath returns the parent of a path: "a.b[1]" for "a.b[1].c", and "a.b" for "a.b[1]".
func parentPath(path string) string {
	if strings.HasSuffix(path, `"]`) {
		return path[:max(strings.LastIndex(path, `["`), 0)]
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// pair is one key of a mapping and its value.
type pair struct {
	key, value *yaml.Node
}

// childPlace returns the place of the value in a pair. Problems with a scalar point at the scalar itself, and problems
// with other values point at the key.
func (p place) childPlace(of pair) place {
	node := of.key
	if of.value.Kind == yaml.ScalarNode {
		node = of.value
	}
	return place{path: v1beta2.Child(p.path, of.key.Value), node: node, secret: p.secret}
}

// mappingPairs returns the pairs of a mapping in order, without duplicates, including those from the merge key "<<". It
// reports a problem and returns false if the node is not a mapping.
func (d *decoder) mappingPairs(at place, n *yaml.Node) (out []pair, ok bool) {
	if n.Kind != yaml.MappingNode {
		d.addError(at, "", "expected fields, got %s", describeNode(n, at.secret))
		return nil, false
	}
	first := map[string]*yaml.Node{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode:
			d.addError(place{path: at.path, node: key}, "", "contains a key that is not a string")
		case first[key.Value] != nil:
			d.addError(place{path: v1beta2.Child(at.path, key.Value), node: key}, "keep one of them",
				"is already set on line %d", first[key.Value].Line)
		default:
			first[key.Value] = key
			out = append(out, pair{key, value})
		}
	}
	for _, m := range merged {
		out = d.mergePairs(at, m, first, out)
	}
	return out, true
}

// mergePairs adds the pairs from the mappings of a merge key, except for keys that are already set.
func (d *decoder) mergePairs(at place, n *yaml.Node, first map[string]*yaml.Node, out []pair) []pair {
	if !d.enterNode(at) {
		return out
	}
	defer d.leaveNode()
	if n.Kind == yaml.AliasNode {
		return d.mergePairs(at, n.Alias, first, out)
	}
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			out = d.mergePairs(at, item, first, out)
		}
		return out
	}
	pairs, _ := d.mappingPairs(place{path: at.path, node: n, secret: at.secret}, n)
	for _, p := range pairs {
		if first[p.key.Value] == nil {
			first[p.key.Value] = p.key
			out = append(out, p)
		}
	}
	return out
}
