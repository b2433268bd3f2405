package manifest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/manifest"
)

const oneHost = `{"version": 4, "terraform_version": "1.9.0", "outputs": {"kubeone_hosts": {"value": ` +
	`{"control_plane": {"cluster_name": "demo", "cloud_provider": "none", "public_address": ["192.0.2.9"]}}}}}`

// inFolder returns options for a manifest with hosts from a directory with a state of one host.
func inFolder(t *testing.T) manifest.Options {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "terraform.tfstate"), []byte(oneHost))
	return manifest.Options{
		ManifestPath: "kubeone.yaml", ManifestReader: strings.NewReader(head), TerraformPath: dir,
		Getenv:       func(string) string { return "" },
		RunTerraform: func(context.Context, string) ([]byte, error) { return nil, manifest.ErrNoTerraform },
	}
}

// A state file in the directory may belong to another workspace or may have moved.
func TestTerraformIsAskedAlthoughThereIsAState(t *testing.T) {
	t.Parallel()
	o := inFolder(t)
	var asked string
	o.RunTerraform = func(_ context.Context, in string) ([]byte, error) {
		asked = in
		return []byte(hostsOutput(`, "cluster_name": "demo", "cloud_provider": "none"`)), nil
	}
	loaded, err := manifest.Load(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if asked != o.TerraformPath || len(loaded.Cluster.ControlPlane) != 3 {
		t.Errorf("asked in %q, got %d hosts", asked, len(loaded.Cluster.ControlPlane))
	}
}

func TestTerraformThatFailsIsNotReplacedByAState(t *testing.T) {
	t.Parallel()
	o := inFolder(t)
	failure := errors.New("the backend does not answer")
	o.RunTerraform = func(context.Context, string) ([]byte, error) { return nil, failure }
	if _, err := manifest.Load(t.Context(), o); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

// Without Terraform, the state is read only if the environment selects no other one.
func TestStateOfTheEnvironment(t *testing.T) {
	t.Parallel()
	selected := map[string]string{".terraform/environment": "staging"}
	elsewhere := map[string]string{"data/terraform.tfstate": `{"backend": {"type": "http"}}`}
	for _, tt := range []struct {
		name  string
		env   map[string]string
		files map[string]string
		want  string // in the error; "" for none
	}{
		{"nothing set", nil, nil, ""},
		{"another workspace", map[string]string{"TF_WORKSPACE": "prod"}, nil, `selects the workspace "prod"`},
		{"the default workspace", map[string]string{"TF_WORKSPACE": "default"}, nil, ""},
		{"the default one instead of the selected one", map[string]string{"TF_WORKSPACE": "default"}, selected, ""},
		{"the selected workspace", nil, selected, `the selected workspace is "staging"`},
		{"a data folder that is not asked for", nil, elsewhere, ""},
		{"another data folder", map[string]string{"TF_DATA_DIR": "data"}, elsewhere, `the backend "http"`},
		{"not the usual data folder", map[string]string{"TF_DATA_DIR": "data"}, selected, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := inFolder(t)
			o.Getenv = func(name string) string { return tt.env[name] }
			for name, content := range tt.files {
				write(t, filepath.Join(o.TerraformPath, name), []byte(content))
			}
			loaded, err := manifest.Load(t.Context(), o)
			switch {
			case tt.want == "" && (err != nil || len(loaded.Cluster.ControlPlane) != 1):
				t.Errorf("got %d hosts, %v", len(loaded.Cluster.ControlPlane), err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), "terraform output -json > tf.json")):
				t.Errorf("error %v, want one that says %q and names the way", err, tt.want)
			}
		})
	}
}

// programs creates a directory for PATH with these programs, each a shell script of one command.
func programs(t *testing.T, scripts map[string]string) string {
	t.Helper()
	bin := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// TestRunTerraform is not parallel: it changes PATH.
func TestRunTerraform(t *testing.T) {
	const (
		terraforms = `provider "registry.terraform.io/hashicorp/aws" {` + "\n}\n"
		tofus      = "# Locked.\n" + `provider "registry.opentofu.org/hashicorp/aws" {` + "\n}\n"
		says       = `echo "${0##*/} $PWD $*"`
	)
	both := map[string]string{"terraform": says, "tofu": says}
	for _, tt := range []struct {
		name     string
		programs map[string]string
		lock     string
		program  string // that answers
		failure  string // in the error; "" for none
	}{
		{"no program", nil, "", "", "neither terraform nor tofu is in the PATH"},
		{"both, no lock file", both, "", "terraform", ""},
		{"both, Terraform's lock file", both, terraforms, "terraform", ""},
		{"both, OpenTofu's lock file", both, tofus, "tofu", ""},
		{"tofu alone", map[string]string{"tofu": says}, terraforms, "tofu", ""},
		{"terraform alone", map[string]string{"terraform": says}, tofus, "terraform", ""},
		{"one that fails", map[string]string{
			"terraform": `printf '\033[31m╷\n│ Error: no state\n╵\n' >&2; exit 3`, "tofu": says,
		}, "", "", "terraform output -json: exit status 3: [31m Error: no state"},
		{"one that fails in silence", map[string]string{"tofu": "exit 4"}, "", "", "tofu output -json: exit status 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.lock != "" {
				write(t, filepath.Join(dir, ".terraform.lock.hcl"), []byte(tt.lock))
			}
			t.Setenv("PATH", programs(t, tt.programs))
			out, err := manifest.RunTerraform(t.Context(), dir)
			if tt.failure != "" {
				if err == nil || !strings.HasSuffix(err.Error(), tt.failure) {
					t.Errorf("error %q, want %q", err, tt.failure)
				}
				return
			}
			if want := tt.program + " " + dir + " output -json\n"; err != nil || string(out) != want {
				t.Errorf("got %q, %v, want %q", out, err, want)
			}
		})
	}
}

// TestTerraformThatNeverEnds is not parallel: it changes PATH.
func TestTerraformThatNeverEnds(t *testing.T) {
	path := os.Getenv("PATH")
	t.Setenv("PATH", programs(t, map[string]string{"terraform": "PATH='" + path + "'; exec yes x"})+":"+path)
	_, err := manifest.RunTerraform(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "the file is larger than 64 MiB") {
		t.Errorf("got %v", err)
	}
}
