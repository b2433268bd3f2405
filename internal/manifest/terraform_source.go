package manifest

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
	"unicode"
)

const (
	// terraformTimeout bounds "terraform output": it reads a state, which may be a remote one.
	terraformTimeout = time.Minute
	// maxComplaint bounds what is kept of what the program says on standard error, in bytes.
	maxComplaint = 4 << 10
	// lockFile names the providers of a configuration, each by the registry that it comes from.
	lockFile = ".terraform.lock.hcl"
)

// ErrNoTerraform means that neither terraform nor tofu is in the PATH.
var ErrNoTerraform = errors.New("neither terraform nor tofu is in the PATH")

// terraformBytes returns the JSON of Terraform's output, and what to call the place it comes from. Of a folder that is
// what Terraform says itself: it knows its workspace and its backend. Only where there is no Terraform, the state file
// is read.
func (l *loader) terraformBytes(ctx context.Context) (data []byte, name string, err error) {
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
		if data, err = l.stateFile(); err != nil {
			return nil, l.TerraformPath, err
		}
		return data, filepath.Join(l.TerraformPath, stateName), nil
	}
	return data, "terraform output in " + l.TerraformPath, err
}

// RunTerraform runs "terraform output -json" in dir and returns what it prints. Where dir has OpenTofu's lock file, or
// where there is no terraform, it runs tofu. It takes a minute at most; an error has what the program said, and is
// ErrNoTerraform where neither program is in the PATH.
func RunTerraform(ctx context.Context, dir string) ([]byte, error) {
	program, err := terraformProgram(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, terraformTimeout, fmt.Errorf("no answer within %s", terraformTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "output", "-json") //nolint:gosec // terraform or tofu, as found above
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // for children that keep its output open
	out, complaint := &bounded{most: maxFileSize}, &bounded{most: maxComplaint, cut: true}
	cmd.Stdout, cmd.Stderr = out, complaint
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case out.full:
		err = errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("%s output -json: %w%s", filepath.Base(program), err, complaint.said())
	}
	return out.text.Bytes(), nil
}

// terraformProgram finds the program that made the folder's state, or else the other one, which refuses loudly what it
// cannot read.
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

// isOpenTofu reports whether a lock file has a provider of OpenTofu's registry, which Terraform never asks.
func isOpenTofu(lock []byte) bool {
	return bytes.Contains(lock, []byte(`provider "registry.opentofu.org/`))
}

// bounded keeps so many bytes of what is written to it. More than that is an error, or if cut is set, left out.
type bounded struct {
	text bytes.Buffer
	most int
	cut  bool
	full bool
}

// Write takes what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.text.Len()
	if len(p) <= room {
		return b.text.Write(p)
	}
	b.full = true
	b.text.Write(p[:room])
	if b.cut {
		return len(p), nil
	}
	return room, io.ErrShortWrite
}

// said is the text for the end of an error: on one line, without control characters and the frame around it.
func (b *bounded) said() string {
	words := strings.FieldsFunc(b.text.String(), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("╷│╵", r)
	})
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, " ")
}
