package manifest

import (
	"fmt"
	"go.yaml.in/yaml/v3"
	"kubeone/api/kubeone/v1beta2"
	"reflect"
	"strings"
)

// Limits of decoding. A manifest of a thousand hosts has about 20,000 nodes; with aliases, a few lines can create many
// more.
const (
	maxNodes = 200_000
	maxDepth = 64
)

// decoder decodes the nodes of one file into Go values by their json tags. It reports values that do not fit and
// continues with the next one.
type decoder struct {
	*loader
	file  string
	root  reflect.Type
	where positions // by the path in the file
	what  string    // what the keys are called in messages
	nulls bool      // warn about nulls: a person wrote the file
	nodes int
	depth int
	// stopped is set after too many nodes or levels were reported.
	stopped bool
}

// place is the current position: the path, the node to point at, and whether values are secret.
type place struct {
	path   string
	node   *yaml.Node
	secret bool
}

func (d *decoder) addError(at place, hint, format string, args ...any) {
	d.addProblem(at, Error, hint, fmt.Sprintf(format, args...))
	d.explain = append(d.explain, at.path)
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
	d.addKindError(at, n, v)
}

// enterNode counts a node and a level. If there are too many, it reports that once and returns false.
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

func (d *decoder) addKindError(at place, n *yaml.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.addKindError(at, n, v.Elem())
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

// warnOfNull warns about "external:" where "external: {}" is probably meant: a YAML null leaves the field unset.
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
		d.explain = append(d.explain, v1beta2.Child(at.path, near))
	} else if child.path == "features.podPresets" {
		hint = "remove it; Kubernetes 1.20 removed PodPresets"
	} else if paths := otherPaths(d.root, key.Value); len(paths) > 0 {
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

// decodeAny decodes values of another API: maps, lists, strings, numbers and booleans, unchanged.
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
		d.anyScalar(at, n, v)
	}
}

// isNothing reports whether a node is absent or null.
func isNothing(n *yaml.Node) bool { return n.ShortTag() == "!!null" }

// valueOf returns the value of a field in a mapping, also through aliases and merge keys, or nil.
func valueOf(n *yaml.Node, name string) *yaml.Node { return findValue(n, name, map[*yaml.Node]bool{}) }

// findValue implements valueOf. Keys of a mapping win over merged ones, and earlier merges over later ones. seen holds
// the mappings without the field, because few lines can merge the same mapping very often.
func findValue(n *yaml.Node, name string, seen map[*yaml.Node]bool) *yaml.Node {
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
			if found := findValue(source, name, seen); found != nil {
				return found
			}
		}
	}
	return nil
}

// mergeSources returns the mappings of a merge key: one, or a list.
func mergeSources(n *yaml.Node) []*yaml.Node {
	if n = resolveAlias(n); n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// resolveAlias returns the node behind an alias, or the node itself.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // never an alias itself
	}
	return n
}

// position is the place of a value in a file.
type position struct {
	File         string
	Line, Column int
	// Path is the path in the file, if it differs from that in the manifest.
	Path string
}

// positions maps paths in the manifest to the places of their values.
type positions map[string]position

// findPosition returns the position of the path, or of its nearest parent in the file.
func (p positions) findPosition(path string) position {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at
		}
		path = parentPath(path)
	}
}

// cutBelow removes the positions at and below a path and returns them by the rest of their paths.
func (p positions) cutBelow(path string) positions {
	out := positions{}
	for at, where := range p {
		if isRelatedPath(at, path) {
			out[strings.TrimPrefix(at, path)] = where
			delete(p, at)
		}
	}
	return out
}

// putBelow adds positions below a path by the rest of their paths.
func (p positions) putBelow(path string, below positions) {
	for rest, where := range below {
		p[path+rest] = where
	}
}

// isRelatedPath reports whether path is above or below it.
func isRelatedPath(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || above == "")
}

// parentPath returns the parent of a path: "a.b[1]" of "a.b[1].c", "a.b" of "a.b[1]".
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

// childPlace returns the place of a pair's value. Problems point at scalars themselves, and at the key of other values.
func (p place) childPlace(of pair) place {
	node := of.key
	if of.value.Kind == yaml.ScalarNode {
		node = of.value
	}
	return place{path: v1beta2.Child(p.path, of.key.Value), node: node, secret: p.secret}
}

// mappingPairs returns the pairs of a mapping in order, without duplicates, including those of the merge key "<<". ok
// is false if the node is not a mapping.
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

// mergePairs adds missing pairs from the mappings of a merge key.
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
