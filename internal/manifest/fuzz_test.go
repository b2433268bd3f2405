package manifest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/txtar"

	"kubeone/examples"
	"kubeone/internal/manifest"
)

// FuzzLoad checks that Load returns for any files and that its error is a non-empty *Problems. It must accept its own
// text of an accepted manifest, with the same digest.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"minimal.yaml", "full.yaml"} {
		text, err := examples.Files.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "")
	}
	paths, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		files := map[string]string{}
		for _, file := range archive.Files {
			files[file.Name] = string(file.Data)
		}
		f.Add(files["kubeone.yaml"], files["tf.json"])
	}
	f.Fuzz(func(t *testing.T, text, tf string) {
		dir := t.TempDir()
		o := manifest.Options{ManifestPath: filepath.Join(dir, "m.yaml"), ManifestReader: strings.NewReader(text)}
		if tf != "" {
			o.TerraformPath = filepath.Join(dir, "tf.json")
			if err := os.WriteFile(o.TerraformPath, []byte(tf), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		loaded, err := manifest.Load(t.Context(), o)
		if err != nil {
			if problems := (*manifest.Problems)(nil); !errors.As(err, &problems) || len(problems.List) == 0 {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		again, err := manifest.Load(t.Context(), manifest.Options{
			ManifestPath:   o.ManifestPath,
			ManifestReader: strings.NewReader(string(loaded.ManifestText)),
		})
		if err != nil {
			t.Fatalf("its own text is refused: %v\n%s", err, loaded.ManifestText)
		}
		if again.Cluster.Digest != loaded.Cluster.Digest {
			t.Fatalf("its own text is another cluster:\n%s\n%s", loaded.ManifestText, again.ManifestText)
		}
	})
}

// FuzzTerraform checks that Load returns for any Terraform output and that its error is a non-empty *Problems. No
// accepted host may have a text that acts as another line or a command in a file or a shell. Loading the resulting text
// must return the same cluster.
func FuzzTerraform(f *testing.F) {
	const rest = "apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\nname: demo\n" +
		"versions:\n  kubernetes: 1.36.3\ncloudProvider:\n  none: {}\nclusterNetwork:\n  cni:\n    flannel: {}\n"
	for _, seed := range []string{
		`{"kubeone_hosts":{"value":{"control_plane":{"private_address":["10.0.0.1"],"public_address":["192.0.2.1"],` +
			`"hostnames":["cp-1"],"ssh_user":"root","ssh_port":22,"untaint":true}}}}`,
		`{"kubeone_api":{"value":{"endpoint":"lb.example.com","apiserver_alternative_names":["a","b"]}},` +
			`"kubeone_static_workers":{"value":{"w":{"private_address":["10.0.0.9"],"bastion":"b","ssh_port":"22"}}}}`,
		`{"version":4,"terraform_version":"1.9","outputs":{"proxy":{"value":{"http":"http://p:3128","noProxy":"x"}}}}`,
		`{"kubeone_hosts":{"value":{"control_plane":{"public_address":["$(reboot)","\u001b[2J","a\nb"]}}}}`,
		`{"kubeone_hosts":{"value":null}}`, `{"kubeone_api":1}`, `[]`, `{`, "null", "",
	} {
		f.Add(seed)
	}
	paths, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if file.Name == "tf.json" {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, tf string) {
		load := func(manifestText, tf string) (manifest.Loaded, error) {
			o := manifest.Options{
				ManifestPath: "m.yaml", ManifestReader: strings.NewReader(manifestText), Stdin: strings.NewReader(tf),
			}
			if tf != "" {
				o.TerraformPath = "-"
			}
			return manifest.Load(t.Context(), o)
		}
		loaded, err := load(rest, tf)
		if err != nil {
			if problems := (*manifest.Problems)(nil); !errors.As(err, &problems) || len(problems.List) == 0 {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for _, h := range loaded.Cluster.Hosts() {
			for _, text := range []string{
				h.ID, h.PublicAddress, h.PrivateAddress, h.Hostname, h.SSH.User, h.SSH.KeyFile, h.SSH.Bastion,
				h.SSH.BastionUser, loaded.Cluster.Endpoint.Host,
			} {
				if strings.ContainsFunc(text, unicode.IsControl) {
					t.Fatalf("%q is accepted", text)
				}
			}
		}
		again, err := load(string(loaded.ManifestText), "")
		if err != nil {
			t.Fatalf("its own text is refused: %v\n%s", err, loaded.ManifestText)
		}
		if again.Cluster.Digest != loaded.Cluster.Digest {
			t.Fatalf("its own text is another cluster:\n%s\n%s", loaded.ManifestText, again.ManifestText)
		}
	})
}
