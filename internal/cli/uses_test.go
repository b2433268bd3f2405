package cli

import (
	"fmt"
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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// use is one command line in a dialogue, a scenario or a document.
type use struct {
	where string   // the file's name
	args  []string // without the program's name; unknownArg where a test computes one
	// refused means that the test expects a status with which nothing was done. Such a use does not count as a test of
	// its flags.
	refused bool
}

// unknownArg stands for an argument known only at run time.
const unknownArg = "\x00"

// resolve finds the command and flags of a use. It fails if one does not exist, and ignores the values of flags.
func (u use) resolve(root *cobra.Command) (*cobra.Command, []*pflag.Flag, error) {
	cmd, args := root, u.args
	for len(args) > 0 && cmd.HasSubCommands() {
		below := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool {
			return c.Name() == args[0] || c.HasAlias(args[0])
		})
		if below < 0 {
			break
		}
		cmd, args = cmd.Commands()[below], args[1:]
	}
	if !isRunnable(cmd) && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return nil, nil, fmt.Errorf("unknown command %q", cmd.CommandPath()+" "+args[0])
	}
	cmd.InitDefaultHelpFlag()
	var flags []*pflag.Flag
	for n := 0; n < len(args); n++ {
		name, _, hasValue := strings.Cut(args[n], "=")
		if len(name) < 2 || name[0] != '-' {
			continue
		}
		flag := cmd.Flags().Lookup(strings.TrimPrefix(name, "--"))
		if !strings.HasPrefix(name, "--") {
			flag = cmd.Flags().ShorthandLookup(name[1:2])
		}
		if flag == nil {
			return nil, nil, fmt.Errorf("%s has no flag %s", cmd.CommandPath(), name)
		}
		flags = append(flags, flag)
		if !hasValue && flag.NoOptDefVal == "" {
			n++ // the next argument is its value
		}
	}
	return cmd, flags, nil
}

// usesOfDialogues returns the commands in testdata/script.
func usesOfDialogues(t *testing.T) []use {
	t.Helper()
	run := regexp.MustCompile(`^(?:! )?(?:exec|exits (\d+)) (?:sh -c ')?kubeone\b(.*)$`)
	substitution := regexp.MustCompile(`\$\([^)]*\)`)
	var out []use
	for _, file := range matching(t, "testdata/script/*.txtar") {
		for _, line := range strings.Split(read(t, file), "\n") {
			if m := run.FindStringSubmatch(line); m != nil {
				line = substitution.ReplaceAllString(m[2], unknownArg)
				done := m[1] == "" || slices.Contains([]string{"0", "2", "3", "4"}, m[1])
				out = append(out, use{filepath.Base(file), strings.Fields(strings.TrimSuffix(line, "'")), !done})
			}
		}
	}
	return out
}

// usesOfScenarios returns the commands in test/e2e: lists of strings, and call arguments, that begin with a command.
// The operator there adds the manifest to each.
func usesOfScenarios(t *testing.T, root *cobra.Command) []use {
	t.Helper()
	var out []use
	for _, file := range append(matching(t, "../../test/e2e/*.go"), matching(t, "../../test/e2e/operator/*.go")...) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			s := scenario{variables: map[string][]string{}, refused: map[ast.Node]bool{}}
			ast.Inspect(decl, func(node ast.Node) bool {
				args := s.list(node)
				for len(args) > 0 && args[0] == unknownArg {
					args = args[1:]
				}
				if len(args) > 0 {
					u := use{filepath.Base(file), args, s.refused[node]}
					if cmd, _, err := u.resolve(root); err == nil && cmd != root {
						if cmd.Flags().Lookup("manifest") != nil {
							u.args = append(slices.Clone(args), "-m", unknownArg)
						}
						out = append(out, u)
					}
				}
				return true
			})
		}
	}
	return out
}

// scenario is what is known about one function.
type scenario struct {
	variables map[string][]string // lists that variables hold
	refused   map[ast.Node]bool   // lists of runs that are refused
}

// others reports whether a function runs another program with similar command names.
func others(name string) bool {
	return slices.Contains([]string{"Kube", "kube", "Feed", "Object", "Exec", "CommandContext"}, name)
}

// list returns the list of strings that a node creates, or nil.
func (s *scenario) list(node ast.Node) []string {
	switch node := node.(type) {
	case *ast.AssignStmt:
		for n, name := range node.Lhs {
			if id, ok := name.(*ast.Ident); ok && len(node.Lhs) == len(node.Rhs) {
				s.variables[id.Name] = s.list(node.Rhs[n])
			}
		}
	case *ast.RangeStmt: // over lists; each is a command line
		lists, ok := node.X.(*ast.CompositeLit)
		if ok && refuses(node.Body) {
			for _, one := range lists.Elts {
				s.refused[one] = true
			}
		}
	case *ast.Ident:
		return s.variables[node.Name]
	case *ast.CompositeLit:
		return texts(node.Elts)
	case *ast.CallExpr:
		name := ""
		switch fun := node.Fun.(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		if name == "append" {
			return append(slices.Clone(s.list(node.Args[0])), texts(node.Args[1:])...)
		}
		if refuses(node) {
			s.refused[node.Args[1]] = true
		}
		switch args := texts(node.Args); {
		case others(name):
		case name == "Start":
			return append(args, "-o", "json") // as the operator does
		default:
			return args
		}
	}
	return nil
}

// refuses reports whether the first call with an expected status in a node expects one with which nothing was done.
// Status 10 does not count: a recovery may restore the cluster and still end with it.
func refuses(in ast.Node) bool {
	wanted := ""
	ast.Inspect(in, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && len(call.Args) > 1 && wanted == "" {
			if status, ok := call.Args[0].(*ast.BasicLit); ok && status.Kind == token.INT {
				wanted = status.Value
			}
		}
		return wanted == ""
	})
	return wanted != "" && !slices.Contains([]string{"0", "2", "3", "4", "10"}, wanted)
}

// texts returns the values of expressions, as far as the source shows them.
func texts(of []ast.Expr) []string {
	var out []string
	for _, one := range of {
		value := unknownArg
		if sum, ok := one.(*ast.BinaryExpr); ok { // "--name=" + value
			one = sum.X
		}
		if literal, ok := one.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, _ = strconv.Unquote(literal.Value)
		}
		out = append(out, value)
	}
	return out
}

func matching(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file is called %s (%v)", pattern, err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
