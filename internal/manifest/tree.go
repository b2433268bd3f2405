package manifest

import "go.yaml.in/yaml/v3"

// isNothing reports whether nothing, or null, is written.
func isNothing(n *yaml.Node) bool { return n.ShortTag() == "!!null" }

// value returns the value of a mapping's field, behind an alias, also where an alias or a merge key brings it; nil
// where there is none.
func value(n *yaml.Node, name string) *yaml.Node { return find(n, name, map[*yaml.Node]bool{}) }

// find is value. What is written in a mapping wins over what is merged into it, and the first of several over the
// others. seen are the mappings that do not have the field; few lines can merge the same one very often.
func find(n *yaml.Node, name string, seen map[*yaml.Node]bool) *yaml.Node {
	if n = behind(n); n.Kind != yaml.MappingNode || seen[n] {
		return nil
	}
	seen[n] = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == name {
			return behind(n.Content[i+1])
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != "!!merge" {
			continue
		}
		for _, source := range sources(n.Content[i+1]) {
			if found := find(source, name, seen); found != nil {
				return found
			}
		}
	}
	return nil
}

// sources are the mappings that a merge key names: one, or a list of them.
func sources(n *yaml.Node) []*yaml.Node {
	if n = behind(n); n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// behind is the node that an alias stands for, and any other node itself.
func behind(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // never an alias: an anchor is of what is written
	}
	return n
}
