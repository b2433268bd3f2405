package controllers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonsIn returns the constants of a package's reasons.go, as value by name, and the problems: unused constants, and
// reasons written as literals elsewhere.
func reasonsIn(t *testing.T, dir string) (reasons map[string]string, wrong []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	reasons = map[string]string{}
	set := token.NewFileSet()
	var others []*ast.File
	for _, path := range all {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) != "reasons.go" {
			others = append(others, file)
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				reasons[spec.Names[0].Name] = textOf(spec.Values[0])
			}
			return true
		})
	}
	for _, file := range others {
		for _, at := range literals(file) {
			wrong = append(wrong, set.Position(at).String()+": a reason that is not in reasons.go")
		}
	}
	return reasons, wrong
}

// textOf returns the value of a constant: a literal, or the name of an API constant, whose value equals its name.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.CallExpr:
		return textOf(e.Args[0])
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literals returns where a file passes a literal reason to a condition or a Waiting error.
func literals(file *ast.File) []token.Pos {
	var out []token.Pos
	ast.Inspect(file, func(n ast.Node) bool {
		var given ast.Expr
		switch n := n.(type) {
		case *ast.CompositeLit:
			if is := typeOf(n.Type); is != "Waiting" && is != "Condition" {
				return true
			}
			for _, field := range n.Elts {
				if f, ok := field.(*ast.KeyValueExpr); ok && typeOf(f.Key) == "Reason" {
					given = f.Value
				}
			}
		case *ast.CallExpr:
			if typeOf(n.Fun) == "setCondition" && len(n.Args) == 5 {
				given = n.Args[3]
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if name := typeOf(to); (name == "reason" || name == "Reason") && len(n.Rhs) == len(n.Lhs) {
					given = n.Rhs[i]
				}
			}
		}
		if lit, ok := given.(*ast.BasicLit); ok {
			out = append(out, lit.Pos())
		}
		return true
	})
	return out
}

// typeOf returns the last name in a qualified identifier.
func typeOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// usedIn reports whether any package names the constant outside of reasons.go.
func usedIn(t *testing.T, dirs []string, name string) bool {
	t.Helper()
	word := regexp.MustCompile(`\b` + name + `\b`)
	for _, dir := range dirs {
		all, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(path) != "reasons.go" && !strings.HasSuffix(path, "_test.go") && word.Match(text) {
				return true
			}
		}
	}
	return false
}

// TestEveryReasonIsInTheDocs checks that the table in docs/machines.md lists exactly the condition reasons of Machines
// and MachineDeployments.
func TestEveryReasonIsInTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/machines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| reason | what to do |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, one := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(first, -1) {
			told = append(told, one[1])
		}
	}
	dirs := []string{".", "../provider", "../provider/ssh"}
	var known []string
	for _, dir := range dirs {
		reasons, wrong := reasonsIn(t, dir)
		for _, w := range wrong {
			t.Error(w)
		}
		for name, value := range reasons {
			if !usedIn(t, dirs, name) {
				t.Errorf("%s: nobody gives that reason", name)
			}
			known = append(known, value)
		}
	}
	slices.Sort(known)
	slices.Sort(told)
	for _, reason := range known {
		if !slices.Contains(told, reason) {
			t.Errorf("docs/machines.md does not say what to do about %s", reason)
		}
	}
	for i, reason := range told {
		if !slices.Contains(known, reason) {
			t.Errorf("docs/machines.md has %s, which no condition has", reason)
		}
		if i > 0 && told[i-1] == reason {
			t.Errorf("docs/machines.md has %s twice", reason)
		}
	}
	if len(known) < 20 {
		t.Errorf("only %d reasons are found", len(known))
	}
}
