// Package machinetest compares the state changes of Machines and Hosts with the diagrams in docs/machines.md.
package machinetest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// State is the name of a state in the diagram.
type State string

// States outside the API.
const (
	None State = "none" // the object does not exist yet
	Any  State = "Any"  // in a diagram, any state without a path to the end
	Gone State = "gone"
)

// Transition is a change from one state to another.
type Transition struct{ From, To State }

// CheckDrawing fails the test unless the diagram of a kind has exactly the observed transitions. path is that of
// docs/machines.md.
func CheckDrawing(t testing.TB, path, kind string, seen map[Transition]bool) {
	t.Helper()
	table := readDrawing(t, path, kind)
	leaving := func(s State) bool {
		return s == None || slices.Contains(table, Transition{s, Gone})
	}
	for tr := range seen {
		if !slices.Contains(table, tr) && (leaving(tr.From) || !slices.Contains(table, Transition{Any, tr.To})) {
			t.Errorf("the drawing of a %s lacks what happens: %s to %s", kind, tr.From, tr.To)
		}
	}
	for _, row := range table {
		happens := seen[row]
		for tr := range seen {
			happens = happens || row.From == Any && tr.To == row.To
		}
		if !happens {
			t.Errorf("the drawing of a %s has what does not happen: %s to %s", kind, row.From, row.To)
		}
	}
}

// readDrawing returns the arrows of the diagram below the comment that names the kind.
func readDrawing(t testing.TB, path, kind string) []Transition {
	t.Helper()
	page, err := os.ReadFile(path) // #nosec G304 -- a name from a test
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, _ := strings.Cut(string(page), "\n    %% "+kind+"\n")
	drawing, _, _ = strings.Cut(drawing, "```")
	var out []Transition
	for _, m := range regexp.MustCompile(`(?m)^    (\S+) --> (\S+): \S`).FindAllStringSubmatch(drawing, -1) {
		tr := Transition{From: State(m[1]), To: State(m[2])}
		if tr.From == "[*]" {
			tr.From = None
		}
		if tr.To == "[*]" {
			tr.To = Gone
		}
		out = append(out, tr)
	}
	if len(out) == 0 {
		t.Fatalf("%s has no drawing of a %s", path, kind)
	}
	return out
}
