// Package style tests what no linter checks: names of functions, and words of comments.
package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// maxOneWord is the share of unexported functions whose name may be one word, in percent. In kind and rig it is 14 %.
const maxOneWord = 20

// foreign matches words that comments do without: name the operator, the caller or another run, and split sentences.
var foreign = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|of which|by which)\b`)

func TestNamesOfFunctions(t *testing.T) {
	t.Parallel()
	var all, oneWord int
	for _, file := range parse(t) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Name.IsExported() || f.Name.Name == "main" || f.Name.Name == "init" {
				continue
			}
			all++
			if f.Name.Name == strings.ToLower(f.Name.Name) {
				oneWord++
			}
		}
	}
	if share := 100 * oneWord / all; share > maxOneWord {
		t.Errorf("%d of %d unexported functions have a name of one word, %d %%; at most %d %% may: "+
			"name what acts by verb and object, and what asks by is, has, can or needs", oneWord, all, share, maxOneWord)
	}
}

func TestWordsOfComments(t *testing.T) {
	t.Parallel()
	for name, file := range parse(t) {
		for _, group := range file.Comments {
			if found := foreign.FindString(group.Text()); found != "" {
				t.Errorf("%s: a comment has %q: say who it is, or split the sentence", name, found)
			}
		}
	}
}

// parse returns the files that people write, by path.
func parse(t *testing.T) map[string]*ast.File {
	t.Helper()
	files, set := map[string]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasPrefix(entry.Name(), "zz_generated"):
			return nil
		}
		files[path], err = parser.ParseFile(set, path, nil, parser.ParseComments)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
