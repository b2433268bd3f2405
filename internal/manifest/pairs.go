package manifest

import (
	"go.yaml.in/yaml/v3"

	"kubeone/api/kubeone/v1beta2"
)

// pair is one key of a mapping and its value.
type pair struct {
	key, value *yaml.Node
}

// child is the place of a pair's value. A scalar is pointed at itself, everything else by its key.
func (p place) child(of pair) place {
	node := of.key
	if of.value.Kind == yaml.ScalarNode {
		node = of.value
	}
	return place{path: v1beta2.Child(p.path, of.key.Value), node: node, secret: p.secret}
}

// pairs returns a mapping's pairs in order, without duplicates, and with those that YAML's merge key "<<" brings. ok is
// false if the node is no mapping.
func (d *decoder) pairs(at place, n *yaml.Node) (out []pair, ok bool) {
	if n.Kind != yaml.MappingNode {
		d.fail(at, "", "expected fields, got %s", describe(n, at.secret))
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
			d.fail(place{path: at.path, node: key}, "", "has a key that is not text")
		case first[key.Value] != nil:
			d.fail(place{path: v1beta2.Child(at.path, key.Value), node: key}, "keep one of them",
				"is set already on line %d", first[key.Value].Line)
		default:
			first[key.Value] = key
			out = append(out, pair{key, value})
		}
	}
	for _, m := range merged {
		out = d.merge(at, m, first, out)
	}
	return out, true
}

// merge adds the pairs of a merge key's mapping, or list of mappings, that are not there yet.
func (d *decoder) merge(at place, n *yaml.Node, first map[string]*yaml.Node, out []pair) []pair {
	if !d.enter(at) {
		return out
	}
	defer d.leave()
	if n.Kind == yaml.AliasNode {
		return d.merge(at, n.Alias, first, out)
	}
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			out = d.merge(at, item, first, out)
		}
		return out
	}
	pairs, _ := d.pairs(place{path: at.path, node: n, secret: at.secret}, n)
	for _, p := range pairs {
		if first[p.key.Value] == nil {
			first[p.key.Value] = p.key
			out = append(out, p)
		}
	}
	return out
}
