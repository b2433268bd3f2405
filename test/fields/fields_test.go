// Package fields tests that the manifest's fields have effects. For each field that kubeone carries out, a test changes
// the field and finds the effect: in the script of a host, in an object, in a plan, or in the connection to a host; or
// every other value is refused. A field whose effect a test elsewhere shows is listed with that test. The tests fail
// for a field with neither, and for a field with a test although its tag says that kubeone does not carry it out.
package fields

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kubeone/internal/testutil/golden"
)

// alteration is a change of a field.
type alteration struct {
	// Value is the field's value in the changed manifest. Nil removes the field.
	Value any `json:"value"`
	// At is the path to change. By default it is the field's path, with the first item of each list.
	At string `json:"at"`
	// Given are other fields of both manifests. Without are fields that the changed manifest lacks.
	Given   map[string]any `json:"given"`
	Without []string       `json:"without"`
}

// readTestdata reads a testdata file strictly.
func readTestdata(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// byPath returns a file's entries by field path.
func byPath[T any](t *testing.T, name string) map[string]T {
	t.Helper()
	var entries map[string]T
	readTestdata(t, name, &entries)
	out := map[string]T{}
	for key, entry := range entries {
		for _, path := range expandKey(key) {
			if _, twice := out[path]; twice {
				t.Errorf("%s has %s twice", name, path)
			}
			out[path] = entry
		}
	}
	return out
}

// TestEveryEffectiveFieldIsTested also checks that no other field has one.
func TestEveryEffectiveFieldIsTested(t *testing.T) {
	t.Parallel()
	all := allFields()
	changed, elsewhere := byPath[alteration](t, "changes.yaml"), byPath[string](t, "elsewhere.yaml")
	known := map[string]bool{}
	for _, f := range all {
		known[f.path] = true
		_, here := changed[f.path]
		_, there := elsewhere[f.path]
		switch {
		case here && there:
			t.Errorf("%s is in changes.yaml and in elsewhere.yaml", f.path)
		case f.carriedOut() && !here && !there:
			t.Errorf("%s has no test: add what changes it to testdata/changes.yaml, or the name of a test that shows "+
				"what comes of it to testdata/elsewhere.yaml", f.path)
		case !f.carriedOut() && (here || there):
			t.Errorf("%s has a test, and its tag is carried:%q", f.path, f.carried)
		}
	}
	for _, listed := range [][]string{sortedKeys(changed), sortedKeys(elsewhere)} {
		for _, path := range listed {
			if !known[path] {
				t.Errorf("testdata has %s, which is no field", path)
			}
		}
	}
	t.Logf("%d fields: %d are carried out, %d of them shown here and %d elsewhere; %d are not", len(all),
		len(fieldPaths(all, true)), len(changed), len(elsewhere), len(fieldPaths(all, false)))
}

func sortedKeys[T any](of map[string]T) []string {
	var out []string
	for key := range of {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// TestFieldsHaveEffects changes each field and finds an effect.
func TestFieldsHaveEffects(t *testing.T) {
	t.Parallel()
	changes := byPath[alteration](t, "changes.yaml")
	dir := writeSurroundings(t)
	usual := effectsOf(t, dir, manifestWith(t, alteration{}, "", false))
	var found strings.Builder
	for _, f := range allFields() {
		change, ok := changes[f.path]
		if !ok {
			continue
		}
		from := usual
		if len(change.Given) > 0 {
			from = effectsOf(t, dir, manifestWith(t, change, f.path, false))
		}
		changed := manifestWith(t, change, f.path, true)
		if problems := from[refused]; problems != nil {
			t.Errorf("%s: the manifest is refused before the change: %q", f.path, problems)
		}
		what := effectsOf(t, dir, changed).findChange(from, markOf(change.Value))
		if what == "" {
			t.Errorf("%s: nothing comes of its change", f.path)
		}
		fmt.Fprintf(&found, "%s: %s\n", f.path, what)
	}
	golden.Check(t, filepath.Join("testdata", "effects.golden"), found.String())
}

// manifestWith returns the base manifest with the given fields of an alteration and, if changed is set, with the
// change.
func manifestWith(t *testing.T, a alteration, path string, changed bool) tree {
	t.Helper()
	var m tree
	readTestdata(t, "base.yaml", &m)
	set := func(path string, value any) {
		if err := setField(m, path, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, given := range sortedKeys(a.Given) {
		set(given, a.Given[given])
	}
	if !changed {
		return m
	}
	for _, gone := range a.Without {
		set(gone, nil)
	}
	if a.At != "" {
		path = a.At
	}
	set(path, a.Value)
	return m
}

// writeSurroundings returns a folder with the files that manifests name.
func writeSurroundings(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{
		"ca.pem", "policy.yaml", "selectors.yaml", "limits.yaml", "webhook.kubeconfig", "authentication.yaml",
	} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// TestNamedTestsExist finds the tests of elsewhere.yaml in this repository.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			there[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")+" "+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, name := range byPath[string](t, "elsewhere.yaml") {
		if !there[name] {
			t.Errorf("elsewhere.yaml says of %s: %s, and there is no such test", path, name)
		}
	}
}
