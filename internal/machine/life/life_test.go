package life

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// constants are the values that a Go file gives constants of a type.
func constants(t *testing.T, path, of string) []State {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []State
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != of {
			return true
		}
		for _, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s: a %s that is no text", path, of)
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, State(text))
		}
		return true
	})
	return out
}

func TestTheTableHasEveryStateOfTheAPI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind     Kind
		path, of string
	}{
		{Machine(), "../../../api/cluster/v1alpha1/machine.go", "MachinePhase"},
		{Host(), "../../../api/kubeone/v1alpha1/host.go", "HostState"},
	} {
		var have []State
		for _, s := range c.kind.States {
			have = append(have, s.State)
		}
		want := constants(t, c.path, c.of)
		slices.Sort(have)
		slices.Sort(want)
		if diff := cmp.Diff(want, have); diff != "" || len(want) == 0 {
			t.Errorf("%s: the API's states, and those of the table (-API +table):\n%s", c.kind.Name, diff)
		}
	}
}

func TestEveryStateIsReachedAndLeft(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		all := map[State]bool{None: true, Gone: true}
		for _, s := range k.States {
			all[s.State] = true
		}
		for _, tr := range k.Transitions {
			if !all[tr.To] || !all[tr.From] && tr.From != Any || tr.On == "" {
				t.Errorf("%s: %+v is not of its states", k.Name, tr)
			}
		}
		reached := map[State]bool{None: true}
		for range all { // each round reaches one more, or none is left
			for from := range maps.Clone(reached) {
				for to := range all {
					reached[to] = reached[to] || k.Leads(from, to)
				}
			}
		}
		for s := range all {
			if !reached[s] {
				t.Errorf("%s: nothing leads to %s", k.Name, s)
			}
			if leaves := slices.ContainsFunc(k.Transitions, func(tr Transition) bool {
				return k.Leads(s, tr.To) && tr.To != s
			}); leaves != (s != Gone) {
				t.Errorf("%s: something leads from %s: %t", k.Name, s, leaves)
			}
		}
	}
}

func TestWhatAnyMeans(t *testing.T) {
	t.Parallel()
	k := Kind{Leaving: []State{"going"}, Transitions: []Transition{{Any, "x", "end"}, {None, "y", "here"}}}
	for from, want := range map[State]bool{"here": true, "going": false, None: false} {
		if got := k.Leads(from, "end"); got != want {
			t.Errorf("%s leads to the end: %t", from, got)
		}
	}
}
