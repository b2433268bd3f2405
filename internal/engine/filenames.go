package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxFileNameBytes is less than the 255 bytes that file systems allow, to leave room for suffixes.
const maxFileNameBytes = 200

// FileNames returns a unique name for a file or directory about each host, by host ID. A host can claim any name, even
// the name of another host or a path. So its name is used only if it is a DNS name that is not the name or ID of
// another host. Otherwise its ID is used, without characters that are not safe in file names.
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

// fileNameForID returns an ID with all characters replaced that are not safe in a file name.
func fileNameForID(id string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, id)
	return cmp.Or(strings.Trim(plain[:min(len(plain), maxFileNameBytes)], ".-"), "host")
}
