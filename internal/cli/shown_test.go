package cli

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

	"github.com/spf13/cobra"
)

// usesOfDocuments returns the commands shown in documents: in code blocks, on their own lines after an optional "$",
// and in the text as `kubeone ...`. Placeholders such as COMMAND are skipped.
func usesOfDocuments(t *testing.T) []use {
	t.Helper()
	inText := regexp.MustCompile("`kubeone ([^`]+)`")
	inBlock := regexp.MustCompile(`^(?:\$ )?kubeone (.*)$`)
	var out []use
	add := func(file, line string) {
		line, _, _ = strings.Cut(line, " #")
		args := strings.Fields(regexp.MustCompile(`[|>&;].*`).ReplaceAllString(line, ""))
		if len(args) > 0 && args[0] != strings.ToUpper(args[0]) {
			out = append(out, use{file, args, false})
		}
	}
	for _, file := range slices.Concat(matching(t, "../../*.md"), matching(t, "../../docs/*.md"),
		matching(t, "../../docs/adr/*.md")) {
		for n, block := range strings.Split("\n"+read(t, file), "\n```") {
			if n%2 == 0 {
				// A command may continue on the next line.
				for _, m := range inText.FindAllStringSubmatch(strings.ReplaceAll(block, "\n", " "), -1) {
					add(filepath.Base(file), m[1])
				}
				continue
			}
			for _, line := range strings.Split(block, "\n") {
				if m := inBlock.FindStringSubmatch(line); m != nil {
					add(filepath.Base(file), m[1])
				}
			}
		}
	}
	return out
}

// usesOfMessages returns the commands in messages and help. Text that does not begin with a command is a sentence about
// the program.
func usesOfMessages(t *testing.T, root *cobra.Command) []use {
	t.Helper()
	named := regexp.MustCompile(`\bkubeone ((?:[a-z]+)(?: (?:-{1,2}[a-z][a-z-]*|[a-z-]+|[A-Z]+\b))*)`)
	var out []use
	err := filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, _ := strconv.Unquote(literal.Value)
				for _, m := range named.FindAllStringSubmatch(text, -1) {
					u := use{path, strings.Fields(m[1]), false}
					if cmd, _, _ := root.Find(u.args[:1]); cmd != root {
						out = append(out, u)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
