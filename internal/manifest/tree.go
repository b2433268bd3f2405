package manifest

import (
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"
)

// isNothing reports whether nothing, or null, is written.
func isNothing(n *yaml.Node) bool { return n.ShortTag() == "!!null" }

// entry finds a field of a mapping, also where an alias or a merge key brings it: the mapping that has it, and the
// index of its key. What is written in a mapping wins over what is merged into it, and the first of several over the
// others. seen are the mappings that do not have it; few lines can merge the same one very often.
func entry(n *yaml.Node, name string, seen map[*yaml.Node]bool) (*yaml.Node, int) {
	if n == nil {
		return nil, -1
	}
	if n = behind(n); n.Kind != yaml.MappingNode || seen[n] {
		return nil, -1
	}
	seen[n] = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == name {
			return n, i
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != "!!merge" {
			continue
		}
		for _, source := range sources(n.Content[i+1]) {
			if owner, at := entry(source, name, seen); owner != nil {
				return owner, at
			}
		}
	}
	return nil, -1
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

// value is the value of a mapping's field, behind an alias; nil where there is none.
func value(n *yaml.Node, name string) *yaml.Node {
	owner, at := entry(n, name, map[*yaml.Node]bool{})
	if owner == nil {
		return nil
	}
	return behind(owner.Content[at+1])
}

// remove takes a field out of a mapping.
func remove(n *yaml.Node, name string) {
	if owner, at := entry(n, name, map[*yaml.Node]bool{}); owner != nil {
		owner.Content = slices.Delete(owner.Content, at, at+2)
	}
}

// add writes a field at the end of a mapping.
func add(n *yaml.Node, name string, value *yaml.Node) {
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: value.Line, Column: value.Column}
	n.Content = append(n.Content, key, value)
}

// mapping is the value of a field that is a mapping, and is made where there is nothing; nil where it is another value.
func mapping(n *yaml.Node, name string) *yaml.Node {
	if n == nil {
		return nil
	}
	found := value(n, name)
	if found == nil || isNothing(found) {
		remove(n, name)
		found = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
		add(n, name, found)
	}
	if found.Kind != yaml.MappingNode {
		return nil
	}
	return found
}

// dnsAddress is the tenth address of a network, which the cluster's DNS server has; "" for what is no network.
func dnsAddress(subnet string) string {
	p, err := netip.ParsePrefix(subnet)
	if err != nil {
		return ""
	}
	address := p.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	return address.String()
}
