package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go.yaml.in/yaml/v3"
	"io"
	"kubeone/api/kubeone/v1beta2"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// The known Terraform outputs. All others are ignored.
const (
	outputAPI     = "kubeone_api"
	outputHosts   = "kubeone_hosts"
	outputStatic  = "kubeone_static_workers"
	outputWorkers = "kubeone_workers"
	outputProxy   = "proxy"
)

// terraformOutput holds the values of the known outputs. The wrapper of each value ({sensitive, type, value}) is
// defined by Terraform and not checked. Within a value, every key must be known.
type terraformOutput struct {
	api     terraformAPI
	hosts   terraformHosts
	static  map[string]hostGroup
	workers map[string]v1beta2.DynamicWorkerConfig
	proxy   v1beta2.ProxyConfig

	where positions // by the path in the file: kubeone_hosts.value.control_plane.ssh_user
	file  string
	above string // the path of the outputs in the file: "" or "outputs"
}

type terraformAPI struct {
	Endpoint         string   `json:"endpoint"`
	AlternativeNames []string `json:"apiserver_alternative_names"`
}

type terraformHosts struct {
	ControlPlane terraformControlPlane `json:"control_plane"`
}

type terraformControlPlane struct {
	ClusterName    string `json:"cluster_name"`
	CloudProvider  string `json:"cloud_provider"`
	LeaderIP       string `json:"leader_ip"`
	Untaint        bool   `json:"untaint"`
	NetworkID      string `json:"network_id"`
	VAppName       string `json:"vapp_name"`
	StorageProfile string `json:"storage_profile"`
	hostGroup      `json:",inline"`
}

// readTerraform reads the Terraform output, if there is any, and merges it into the cluster.
func (l *loader) readTerraform(ctx context.Context) {
	if l.TerraformPath == "" {
		return
	}
	data, name, err := l.readTerraformJSON(ctx)
	if err != nil {
		l.terraformFailed = true
		hint := "-t takes a file, a directory or -"
		if errors.Is(err, ErrNoTerraform) {
			hint = "where it is installed, run terraform output -json > tf.json, and use -t tf.json; or pipe it to -t -"
		}
		l.reportFile(name, hint, fmt.Errorf("read the Terraform output: %w", err))
		return
	}
	before := len(l.found)
	out := l.parseTerraform(data, name)
	if l.terraformFailed = slices.ContainsFunc(l.found[before:], func(p Problem) bool {
		return p.Severity == Error
	}); !l.terraformFailed {
		l.mergeTerraform(out)
	}
}

// quoteFirstLine returns an addition to an error: the first line of a text that is not JSON at all, such as a warning.
// It returns "" if the text is empty or may be JSON.
func quoteFirstLine(data []byte) string {
	text := strings.TrimSpace(string(data))
	if text == "" || strings.ContainsRune("{[", rune(text[0])) {
		return ""
	}
	line, _, _ := strings.Cut(text, "\n")
	return fmt.Sprintf("; it starts with %.80q", line)
}

func (l *loader) parseTerraform(data []byte, name string) *terraformOutput {
	out := &terraformOutput{where: positions{}, file: name}
	root, bad := parseJSON(data)
	if bad != nil {
		l.found = append(l.found,
			Problem{File: name, Line: bad.line, Column: bad.column, Severity: Error, cause: bad.err,
				Message: "not valid JSON: " + bad.err.Error() + quoteFirstLine(data),
				Hint:    "create the file with: terraform output -json"})
		return out
	}
	if outputs := lookupKey(root, "outputs"); outputs != nil &&
		(lookupKey(root, "version") != nil || lookupKey(root, "terraform_version") != nil) {
		root, out.above = outputs, "outputs"
	}
	targets := map[string]any{
		outputAPI: &out.api, outputHosts: &out.hosts, outputStatic: &out.static, outputWorkers: &out.workers,
		outputProxy: &out.proxy,
	}
	known := slices.Sorted(maps.Keys(targets))
	found := 0
	for _, key := range known {
		if n := lookupKey(root, key); n != nil {
			found++
			l.decodeOutput(out, key, n, targets[key])
		}
	}
	l.reportForeignOutput(out, root, known, found)
	return out
}

// decodeOutput decodes the value of one output.
func (l *loader) decodeOutput(out *terraformOutput, key string, n *yaml.Node, target any) {
	at := place{path: v1beta2.Child(out.above, key), node: n}
	d := &decoder{
		loader: l, file: out.file, where: out.where, what: "key of this output", root: reflect.TypeOf(target).Elem(),
	}
	value := lookupKey(n, "value")
	if value == nil {
		d.addError(at, "create the file with: terraform output -json", "has no value")
		return
	}
	d.decodeValue(place{path: at.path + ".value", node: value}, value, reflect.ValueOf(target).Elem())
}

// reportForeignOutput reports output keys that are similar to known ones. If no known key was found, it reports an
// error.
func (l *loader) reportForeignOutput(out *terraformOutput, root *yaml.Node, known []string, found int) {
	p := Problem{File: out.file, Line: root.Line, Column: root.Column, Severity: Warning}
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		near := suggestName(key.Value, known)
		if near == "" || near == key.Value || !strings.HasPrefix(foldName(key.Value), "kube") {
			continue
		}
		p.Line, p.Column, p.Path = key.Line, key.Column, v1beta2.Child(out.above, key.Value)
		p.Message, p.Hint = "is not an output that kubeone reads", "did you mean "+near+"?"
		if found > 0 {
			l.found = append(l.found, p)
		}
	}
	if found > 0 {
		return
	}
	p.Severity = Error
	if p.Message == "" {
		p.Message = "contains none of the outputs " + strings.Join(known, ", ")
		p.Hint = "run terraform apply or tofu apply first; read an encrypted state with: tofu output -json"
	}
	l.found = append(l.found, p)
}

// lookupKey returns the value of a key in a mapping, or nil.
func lookupKey(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

const (
	// terraformTimeout is the timeout for "terraform output", which may read a remote state.
	terraformTimeout = time.Minute
	// maxErrorOutput is the maximum length of the standard error that is kept, in bytes.
	maxErrorOutput = 4 << 10
	// lockFile is the file in which Terraform records the providers of a configuration and their registries.
	lockFile = ".terraform.lock.hcl"
)

// ErrNoTerraform means that neither terraform nor tofu is in the PATH.
var ErrNoTerraform = errors.New("neither terraform nor tofu is in the PATH")

// readTerraformJSON returns the Terraform output as JSON, and a name of its source for messages. In a directory, it
// runs Terraform, which knows the workspace and the backend. It reads the state file only if Terraform is not
// installed.
func (l *loader) readTerraformJSON(ctx context.Context) (data []byte, name string, err error) {
	if l.TerraformPath == "-" {
		data, err = l.readStdin()
		return data, "standard input", err
	}
	info, err := os.Stat(l.TerraformPath)
	if err != nil {
		return nil, l.TerraformPath, err
	}
	if !info.IsDir() {
		data, err = readFile(l.TerraformPath)
		return data, l.TerraformPath, err
	}
	data, err = l.RunTerraform(ctx, l.TerraformPath)
	if errors.Is(err, ErrNoTerraform) {
		if data, err = l.readStateFile(); err != nil {
			return nil, l.TerraformPath, err
		}
		return data, filepath.Join(l.TerraformPath, stateName), nil
	}
	return data, "terraform output in " + l.TerraformPath, err
}

// RunTerraform runs "terraform output -json" in dir and returns the output. It runs tofu instead if the lock file is
// from OpenTofu, or if terraform is not installed. The timeout is one minute. Errors include the standard error of the
// program. If neither program is installed, the error is ErrNoTerraform.
func RunTerraform(ctx context.Context, dir string) ([]byte, error) {
	program, err := terraformProgram(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, terraformTimeout, fmt.Errorf("no answer within %s", terraformTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "output", "-json") //nolint:gosec // terraform or tofu
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // for children that keep its output open
	out, complaint := &limitedBuffer{max: maxFileSize}, &limitedBuffer{max: maxErrorOutput, truncate: true}
	cmd.Stdout, cmd.Stderr = out, complaint
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case out.exceeded:
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("%s output -json: %w%s", filepath.Base(program), err, complaint.errorSuffix())
	}
	return out.text.Bytes(), nil
}

// terraformProgram returns the path of the program that created the state in the directory. If that program is not
// installed, it returns the other one, which refuses the state with a clear message.
func terraformProgram(dir string) (string, error) {
	names := []string{"terraform", "tofu"}
	lock, err := readFile(filepath.Join(dir, lockFile))
	if err == nil && isOpenTofu(lock) {
		names = []string{"tofu", "terraform"}
	}
	for _, name := range names {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", ErrNoTerraform
}

// isOpenTofu reports whether a lock file contains a provider from the OpenTofu registry, which Terraform never uses.
func isOpenTofu(lock []byte) bool {
	return bytes.Contains(lock, []byte(`provider "registry.opentofu.org/`))
}

// limitedBuffer keeps the first max bytes written to it. If truncate is set, it discards the rest; otherwise, more
// bytes are an error.
type limitedBuffer struct {
	text     bytes.Buffer
	max      int
	truncate bool
	exceeded bool
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	room := b.max - b.text.Len()
	if len(p) <= room {
		return b.text.Write(p)
	}
	b.exceeded = true
	b.text.Write(p[:room])
	if b.truncate {
		return len(p), nil
	}
	return room, io.ErrShortWrite
}

// errorSuffix returns the text as the end of an error message: on one line, without control characters and without the
// frame that Terraform draws.
func (b *limitedBuffer) errorSuffix() string {
	words := strings.FieldsFunc(b.text.String(), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("╷│╵", r)
	})
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, " ")
}
