// Package operator acts as an operator of kubeone in a lab. It runs kubeone's commands like a person or a script, and
// then inspects hosts and cluster independently of kubeone, through docker and kubectl.
package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// Operator works on one lab. It is not safe for concurrent use, but its processes are.
type Operator struct {
	Lab *fleet.Lab
	// Program is the built kubeone, Kubectl a kubectl of the cluster's version.
	Program, Kubectl string
	// Dir holds the state and files of this operator.
	Dir string
	// Manifest and Bundle are the default paths for commands. Terraform is the default for -t, and Credentials for -c;
	// empty means none.
	Manifest, Bundle, Terraform, Credentials string
	// Environment are additional variables for commands: "NAME=VALUE".
	Environment []string
	// Agnhost is the OCI layout of the test workload's image.
	Agnhost string
}

// New builds kubeone and returns an operator of the lab with its files in dir.
func New(ctx context.Context, lab *fleet.Lab, dir string) (*Operator, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return nil, err
	}
	program, err := fleet.BuildKubeone(ctx, cache)
	if err != nil {
		return nil, err
	}
	o := &Operator{Lab: lab, Dir: dir, Manifest: filepath.Join(dir, "kubeone.yaml")}
	set, err := o.equipVersion(ctx, cache)
	if err != nil {
		return nil, err
	}
	for _, image := range set.Images {
		if strings.HasPrefix(image.Name, "agnhost") {
			o.Agnhost = image.Layout
		}
	}
	// A copy, because another build may replace the cache's program.
	o.Program = filepath.Join(dir, "kubeone")
	if err := copyFile(program, o.Program, 0o755); err != nil {
		return nil, err
	}
	return o, o.WriteManifest()
}

// equipVersion provides what depends on the lab's Kubernetes version.
func (o *Operator) equipVersion(ctx context.Context, cache components.Cache) (*components.Set, error) {
	builder := components.NewBuilder(cache, nil)
	builder.CNI = o.Lab.CNI
	set, err := builder.Build(ctx, o.Lab.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	o.Kubectl, o.Bundle = set.Bin["kubectl"], o.Lab.Bundle
	return set, nil
}

// Want changes the manifest to another Kubernetes version, given without a leading v, and uses that version's bundle
// from now on.
func (o *Operator) Want(ctx context.Context, version string) error {
	from := o.Lab.KubernetesVersion
	if err := o.Lab.Want(ctx, version, nil); err != nil {
		return err
	}
	cache, err := components.DefaultCache()
	if err != nil {
		return err
	}
	if _, err := o.equipVersion(ctx, cache); err != nil {
		return err
	}
	wanted := func(version string) string { return fmt.Sprintf("kubernetes: %q\n", version) }
	return o.writeManifest(o.Manifest, o.Manifest, []Edit{Replace(wanted(from), wanted(version))})
}

// WantCNI changes the bundle to another version of the network plugin, as in fleet.Options.CNI, and edits the manifest.
func (o *Operator) WantCNI(ctx context.Context, cni string, edits ...Edit) error {
	if err := o.Lab.WantCNI(ctx, cni, nil); err != nil {
		return err
	}
	o.Bundle = o.Lab.Bundle
	return o.writeManifest(o.Manifest, o.Manifest, edits)
}

func copyFile(from, to string, mode os.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, mode)
}

// Edit changes the text of a manifest.
type Edit func(string) string

// Replace returns an edit that replaces every occurrence of a text.
func Replace(text, by string) Edit {
	return func(manifest string) string { return strings.ReplaceAll(manifest, text, by) }
}

// WriteManifest writes the edited manifest of the lab as the operator's own.
func (o *Operator) WriteManifest(edits ...Edit) error {
	return o.writeManifest(o.Manifest, o.Lab.Path("kubeone.yaml"), edits)
}

// Variant writes an edited copy of the operator's manifest, and returns its path. An edit without a change is an error:
// its text is missing from the manifest.
func (o *Operator) Variant(name string, edits ...Edit) (string, error) {
	path := filepath.Join(o.Dir, name+".yaml")
	return path, o.writeManifest(path, o.Manifest, edits)
}

func (o *Operator) writeManifest(path, from string, edits []Edit) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	manifest := string(text)
	for n, edit := range edits {
		edited := edit(manifest)
		if edited == manifest {
			return fmt.Errorf("edit %d changes nothing in the manifest %s", n+1, from)
		}
		manifest = edited
	}
	return os.WriteFile(path, []byte(manifest), 0o600)
}

// Result is the outcome of a command.
type Result struct {
	Args           []string
	Status         int
	Stdout, Stderr string
	Took           time.Duration
}

// String returns the command and its output. The result comes last, because logs are cut at the start.
func (r Result) String() string {
	return fmt.Sprintf("kubeone %s: exit status %d after %.1f s\n--- standard error\n%s--- standard output\n%s",
		strings.Join(r.Args, " "), r.Status, r.Took.Seconds(), r.Stderr, r.Stdout)
}

// Text returns all output of the command.
func (r Result) Text() string { return r.Stdout + r.Stderr }

// Run runs a kubeone command to its end, without a terminal. It ends with ctx.
func (o *Operator) Run(ctx context.Context, args ...string) Result { return o.Piped(ctx, nil, args...) }

// Piped is Run with something on standard input.
func (o *Operator) Piped(ctx context.Context, stdin io.Reader, args ...string) Result {
	cmd := o.newCommand(ctx, args)
	cmd.Stdin = stdin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	started := time.Now()
	err := cmd.Run()
	return Result{
		Args: args, Status: statusOf(err), Stdout: stdout.String(), Stderr: stderr.String(), Took: time.Since(started),
	}
}

// statusOf returns the exit status, or -1 for a command that could not run or was killed.
func statusOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// takesBundle reports whether the command has the flag --bundle.
func takesBundle(verb string) bool {
	switch verb {
	case "plan", "apply", "install", "upgrade", "recover":
		return true
	}
	return false
}

// takesManifest reports whether the command has a manifest: all have one except those about a single file or the pool.
func takesManifest(args []string) bool {
	switch args[0] {
	case "host", "controller", "diff", "export":
		return false
	case "bundle":
		return hasFlag(args, "create")
	case "backup":
		return !hasFlag(args, "verify") && !hasFlag(args, "inspect")
	}
	return true
}

// newCommand adds manifest and bundle to a kubeone command that does not name its own.
func (o *Operator) newCommand(ctx context.Context, args []string) *exec.Cmd {
	full := append([]string{}, args...)
	if takesManifest(args) && !hasFlag(args, "-m") {
		full = append(full, "-m", o.Manifest)
	}
	if o.Terraform != "" && !hasFlag(args, "-t") {
		full = append(full, "-t", o.Terraform)
	}
	if o.Credentials != "" && takesManifest(args) && !hasFlag(args, "-c") && !hasFlag(args, "--credentials") {
		full = append(full, "-c", o.Credentials)
	}
	if takesBundle(args[0]) && !hasFlag(args, "--bundle") && o.Bundle != "" {
		full = append(full, "--bundle", o.Bundle)
	}
	cmd := exec.CommandContext(ctx, o.Program, full...)
	cmd.Env = append(os.Environ(), "KUBEONE_STATE="+filepath.Join(o.Dir, "state"), "NO_COLOR=1", "SSH_AUTH_SOCK=")
	cmd.Env = append(cmd.Env, o.Environment...)
	return cmd
}

func hasFlag(args []string, flag string) bool {
	for _, arg := range args {
		if arg == flag {
			return true
		}
	}
	return false
}
