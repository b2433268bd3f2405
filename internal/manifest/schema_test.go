package manifest_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/examples"
	"kubeone/internal/manifest"
)

// compiled returns the compiled schema of manifests, which must be valid for its draft.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(v1beta2.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("manifest.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.DraftVersion != 7 {
		t.Fatalf("the schema is of draft %d", s.DraftVersion)
	}
	return s
}

// instance decodes a manifest as editors do.
func instance(text []byte) (any, error) {
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
}

func TestSchemaTakesTheExamples(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	paths, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("examples: %v, %v", paths, err)
	}
	for _, path := range paths {
		text, err := examples.Files.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := instance(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(tree); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSchemaRefusesNoManifest checks that the program refuses every manifest of the dialogues that the schema refuses.
func TestSchemaRefusesNoManifest(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	paths, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	taken, refused := 0, 0
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := map[string][]byte{}
		for _, f := range archive.Files {
			text[f.Name] = f.Data
		}
		tree, err := instance(text["kubeone.yaml"])
		if err != nil || text["kubeone.yaml"] == nil {
			continue // not YAML
		}
		wrong, bad := s.Validate(tree), strings.Contains(string(text["problems"]), ": error: ")
		switch {
		case wrong != nil && !bad:
			t.Errorf("%s: %v", path, wrong)
		case wrong != nil:
			refused++
		default:
			taken++
		}
	}
	if taken < 40 || refused < 10 {
		t.Errorf("only %d manifests are taken and %d refused", taken, refused)
	}
}

// TestSchemaRefusesWhatTheProgramRefuses checks examples with one mistake that both must find.
func TestSchemaRefusesWhatTheProgramRefuses(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	for path, replacement := range map[string][2]string{
		"apiVersion":                      {"v1beta2", "v1beta1"},
		"kind":                            {"KubeOneCluster", "Cluster"},
		"title":                           {"name:", "title:"},
		"versions":                        {"versions:\n  kubernetes: 1.36.3\n", ""},
		"versions.kubernetes":             {"kubernetes: 1.36.3", "kubernetes: 1.36"},
		"cloudProvider":                   {"{none: {}}", "{none: {}, aws: {}}"},
		"cloudProvider.none":              {"{none: {}}", "{none: true}"},
		"cloudProvider.none.zone":         {"{none: {}}", "{none: {zone: a}}"},
		"controlPlane.hosts[0].sshport":   {"- publicAddress", "- sshport: 22\n      publicAddress"},
		"controlPlane.hosts[0]":           {"- publicAddress", "-\n    - publicAddress"},
		"controlPlane.hosts":              {"hosts:\n    -", "hosts:\n     "},
		"controlPlane.hosts[0].taints[0]": {"- publicAddress", "- taints: [a]\n      publicAddress"},
		"clusterNetwork.cni":              {"flannel: {}", "{flannel: {}, external: {}}"},
		"upgrade.drain.timeout":           {"name:", "upgrade: {drain: {timeout: 5}}\nname:"},
		"backup.schedule":                 {"name:", "backup: {schedule: daily}\nname:"},
		"upgrade.maxUnavailable":          {"name:", "upgrade: {maxUnavailable: 101%}\nname:"},
		"features.metricsServer.enable":   {"name:", "features: {metricsServer: {enable: yes please}}\nname:"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(mistaken, replacement[0], replacement[1], 1)
			if text == mistaken {
				t.Fatalf("%q is not in the manifest", replacement[0])
			}
			refusedByBoth(t, s, text, path)
		})
	}
	if _, err := manifest.Load(t.Context(), manifest.Options{ManifestReader: strings.NewReader(mistaken)}); err != nil {
		t.Errorf("without a mistake: %v", err)
	}
}

// mistaken is a manifest without its mistake.
const mistaken = `
apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: demo
versions:
  kubernetes: 1.36.3
cloudProvider: {none: {}}
clusterNetwork:
  cni:
    flannel: {}
controlPlane:
  hosts:
    - publicAddress: 192.0.2.1
`

// refusedByBoth checks that the schema refuses a manifest, and that the program has an error at or below the path.
func refusedByBoth(t *testing.T, s *jsonschema.Schema, text, path string) {
	t.Helper()
	tree, err := instance([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if s.Validate(tree) == nil {
		t.Errorf("the schema takes\n%s", text)
	}
	if said := errorsAt(t, text, path); len(said) == 0 {
		t.Errorf("the program takes\n%s", text)
	}
}

// errorsAt returns the errors of the program at, above or below a path.
func errorsAt(t *testing.T, text, path string) []manifest.Problem {
	t.Helper()
	_, err := manifest.Load(t.Context(), manifest.Options{ManifestReader: strings.NewReader(text)})
	problems := (*manifest.Problems)(nil)
	if !errors.As(err, &problems) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(problems.List), func(p manifest.Problem) bool {
		return p.Severity != manifest.Error ||
			!strings.HasPrefix(p.Path, path) && (p.Path == "" || !strings.HasPrefix(path, p.Path))
	})
}
