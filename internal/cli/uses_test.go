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

// use is one run of the program that is written down: in a dialogue, a scenario or a document.
type use struct {
	where string   // the file's name
	args  []string // without the program's name; unknownArg where a test computes one
	// refused is set where the test wants a status with which nothing was done, so that it shows of no command that it
	// works, and of no flag that it has an effect.
	refused bool
}

// unknownArg stands for an argument that only the test's run knows.
const unknownArg = "\x00"

// resolve finds a use's command and flags. It fails for a command or a flag that does not exist; what flags are set
// to is not looked at.
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

// usesOfDialogues are the runs of testdata/script.
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

// usesOfScenarios are the runs of the program that test/e2e writes: lists of strings, and arguments of calls, that
// begin with a command. Its operator names the manifest in each.
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

// scenario is what is known of one function.
type scenario struct {
	variables map[string][]string // lists that variables hold
	refused   map[ast.Node]bool   // lists of runs that are refused
}

// others are functions that run another program, whose commands have names as ours do.
func others(name string) bool {
	return slices.Contains([]string{"Kube", "kube", "Feed", "Object", "Exec", "CommandContext"}, name)
}

// list is the list of strings that a node makes, nil if it makes none.
func (s *scenario) list(node ast.Node) []string {
	switch node := node.(type) {
	case *ast.AssignStmt:
		for n, name := range node.Lhs {
			if id, ok := name.(*ast.Ident); ok && len(node.Lhs) == len(node.Rhs) {
				s.variables[id.Name] = s.list(node.Rhs[n])
			}
		}
	case *ast.RangeStmt: // over lists, each of which is run
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

// refuses reports whether the first call in a node that says which status it wants, as run does, wants one with which
// nothing was done. 10 is also that of a recovery that brought the cluster back and could not do all of the rest.
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

// texts are the values of expressions, as far as the source says them.
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
