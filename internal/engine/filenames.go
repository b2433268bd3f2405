package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxFileNameBytes leaves room for suffixes: file systems allow 255 bytes.
const maxFileNameBytes = 200

// FileNames returns a unique name for a file or folder about each host, by ID; it is never a path. A host may claim
// any name, even another host's or a path. Its name is used only if it is a DNS name that no other host has as name
// or ID. Otherwise its ID is used.
func (p Proposal) FileNames() map[string]string {
	ids := slices.Collect(maps.Keys(p.Plan.Hosts))
	for _, h := range p.Want.Hosts() {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	claims := map[string]int{} // number of hosts with that name or ID
	for _, id := range ids {
		claims[p.NodeOf(id)]++
		if own := fileNameForID(id); own != p.NodeOf(id) {
			claims[own]++
		}
	}
	out, taken := map[string]string{}, map[string]bool{}
	for _, id := range ids {
		name := p.NodeOf(id)
		if claims[name] > 1 || len(name) > maxFileNameBytes || len(validation.IsDNS1123Subdomain(name)) > 0 {
			name = fileNameForID(id)
		}
		for unique, n := name, 2; taken[name]; n++ { // IDs that differ only in dropped characters
			name = fmt.Sprintf("%s-%d", unique, n)
		}
		out[id], taken[name] = name, true
	}
	return out
}

// fileNameForID returns an ID without characters that file names cannot have.
func fileNameForID(id string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, id)
	return cmp.Or(strings.Trim(plain[:min(len(plain), maxFileNameBytes)], ".-"), "host")
}
