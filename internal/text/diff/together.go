package diff

import (
	"encoding/json"
	"slices"
)

// Together groups hosts with the same changes, in the order of first appearance in ids. Hosts without changes are left
// out. The sets contain host IDs and share no memory with ids.
func Together(ids []string, of map[string][]Change) []Set {
	var out []Set
	for _, id := range ids {
		changes := of[id]
		if len(changes) == 0 {
			continue
		}
		at := slices.IndexFunc(out, func(s Set) bool { return slices.Equal(asTexts(s.Changes), asTexts(changes)) })
		if at < 0 {
			out = append(out, Set{Changes: changes})
			at = len(out) - 1
		}
		out[at].Hosts = append(out[at].Hosts, id)
	}
	return out
}

// asTexts encodes changes for comparison.
func asTexts(changes []Change) []string {
	out := make([]string, 0, len(changes))
	for _, c := range changes {
		text, _ := json.Marshal(c) // strings never fail
		out = append(out, string(text))
	}
	return out
}

// Within returns the sets limited to most bytes of JSON. Changes that do not fit say that they were left out. Names of
// hosts and of changed files stay.
func Within(most int, sets []Set) []Set {
	const leftOut = "left out: there is too much of it"
	var out []Set
	used := 0
	for _, s := range sets {
		kept := Set{Hosts: s.Hosts}
		for _, c := range s.Changes {
			size := len(asTexts([]Change{c})[0])
			if used+size > most {
				c = Change{Of: c.Of, Unknown: leftOut}
				size = len(asTexts([]Change{c})[0])
			}
			if used += size; used <= most+most/4 {
				kept.Changes = append(kept.Changes, c)
			}
		}
		if len(kept.Changes) > 0 {
			out = append(out, kept)
		}
	}
	return out
}
