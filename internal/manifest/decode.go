package manifest

import (
	"fmt"
	"go.yaml.in/yaml/v3"
	"kubeone/api/kubeone/v1beta2"
	"reflect"
	"strings"
)

// The bounds of what is decoded. A manifest of a thousand hosts has about 20,000 nodes; aliases can make many more of
// few lines.
const (
	maxNodes = 200_000
	maxDepth = 64
)

// decoder turns one file's tree of nodes into Go values, by their json tags. What does not fit is reported, and
// decoding goes on with the next value.
type decoder struct {
	*loader
	file  string
	root  reflect.Type
	where positions // by the path in the file
	what  string    // what every key has to be, for messages
	nulls bool      // nothing is likely a mistake: a person wrote the file
	nodes int
	depth int
	// stopped says that there were too many nodes or levels, which has been said.
	stopped bool
}

// place is where the walk is: the path so far, the node to point at, and whether values must not be repeated.
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

// enterNode counts one more node and level. It returns false, and says so once, if there are too many.
func (d *decoder) enterNode(at place) bool {
	if d.nodes < maxNodes && d.depth < maxDepth {
		d.nodes++
		d.depth++
		return true
	}
	if !d.stopped {
		d.addError(at, "", "is nested too deeply, or repeats too much")
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

// warnOfNull warns where "external:" is written and "external: {}" is meant: YAML's nothing is a field that is not set.
func (d *decoder) warnOfNull(at place, v reflect.Value) {
	if d.nulls && v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
		d.addProblem(at, Warning, "write {} after the colon to set it", "has no value, which means that it is not set")
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

// addUnknownField reports a field that does not exist, and which one was probably meant.
func (d *decoder) addUnknownField(at place, key *yaml.Node, names []string) {
	child := place{path: v1beta2.Child(at.path, key.Value), node: key}
	var hint string
	if near := suggestName(key.Value, names); near != "" {
		hint = "did you mean " + near + "?"
		d.explain = append(d.explain, v1beta2.Child(at.path, near))
	} else if child.path == "features.podPresets" {
		hint = "remove it: Kubernetes has no PodPresets since 1.20"
	} else if paths := otherPaths(d.root, key.Value); len(paths) > 0 {
		hint = "did you mean " + strings.Join(paths, " or ") + "?"
	} else if len(names) > 0 && len(names) <= 8 {
		hint = "known here: " + strings.Join(names, ", ")
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
		hint := "begin each item with a dash"
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
			d.addError(child, "remove the dash, or write something after it", "the item is empty")
			continue
		}
		d.decodeValue(child, item, v.Index(i))
	}
}

// decodeAny decodes what belongs to someone else: maps, lists, texts, numbers and truth values, as they are.
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

// isNothing reports whether nothing, or null, is written.
func isNothing(n *yaml.Node) bool { return n.ShortTag() == "!!null" }

// valueOf returns the value of a mapping's field, behind an alias, also where an alias or a merge key brings it; nil
// where there is none.
func valueOf(n *yaml.Node, name string) *yaml.Node { return findValue(n, name, map[*yaml.Node]bool{}) }

// findValue is value. What is written in a mapping wins over what is merged into it, and the first of several over the
// others. seen are the mappings that do not have the field; few lines can merge the same one very often.
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

// mergeSources are the mappings that a merge key names: one, or a list of them.
func mergeSources(n *yaml.Node) []*yaml.Node {
	if n = resolveAlias(n); n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// resolveAlias is the node that an alias stands for, and any other node itself.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // never an alias: an anchor is of what is written
	}
	return n
}

// position is where a value was written.
type position struct {
	File         string
	Line, Column int
	// Path is how the file itself names the place, where that is not the path in the manifest.
	Path string
}

// positions says where values were written, by their path in the manifest.
type positions map[string]position

// findPosition returns the position of the path, or of the nearest thing above it that was written.
func (p positions) findPosition(path string) position {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at
		}
		path = parentPath(path)
	}
}

// cutBelow removes everything at and below a path, and returns it by what follows the path.
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

// putBelow adds positions below a path, by what follows the path.
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

// parentPath is the path above a path: "a.b[1]" of "a.b[1].c", "a.b" of "a.b[1]".
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

// childPlace is the place of a pair's value. A scalar is pointed at itself, everything else by its key.
func (p place) childPlace(of pair) place {
	node := of.key
	if of.value.Kind == yaml.ScalarNode {
		node = of.value
	}
	return place{path: v1beta2.Child(p.path, of.key.Value), node: node, secret: p.secret}
}

// mappingPairs returns a mapping's pairs in order, without duplicates, and with those that YAML's merge key "<<"
// brings. ok is false if the node is no mapping.
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
			d.addError(place{path: at.path, node: key}, "", "has a key that is not text")
		case first[key.Value] != nil:
			d.addError(place{path: v1beta2.Child(at.path, key.Value), node: key}, "keep one of them",
				"is set already on line %d", first[key.Value].Line)
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

// mergePairs adds the pairs of a merge key's mapping, or list of mappings, that are not there yet.
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
