package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// terraformTimeout bounds "terraform output": it reads a state, which may be a remote one.
const terraformTimeout = time.Minute

// terraformBytes returns the JSON of Terraform's output, and what to call the place it comes from.
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
	state := filepath.Join(l.TerraformPath, "terraform.tfstate")
	if data, err = readFile(state); !errors.Is(err, fs.ErrNotExist) {
		return data, state, err
	}
	data, err = l.RunTerraform(ctx, l.TerraformPath)
	return data, "terraform output in " + l.TerraformPath, err
}

// RunTerraform runs "terraform output -json" in dir, or "tofu output -json" where there is no terraform, and returns
// what it prints. It takes a minute at most; an error has what the program said.
func RunTerraform(ctx context.Context, dir string) ([]byte, error) {
	program, err := exec.LookPath("terraform")
	if err != nil {
		if program, err = exec.LookPath("tofu"); err != nil {
			return nil, errors.New("there is no terraform.tfstate, and neither terraform nor tofu is in the PATH")
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, terraformTimeout, fmt.Errorf("no answer within %s", terraformTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "output", "-json") //nolint:gosec // terraform or tofu, as found above
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // for children that keep its output open
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil,
			fmt.Errorf("%s output -json: %w: %s", filepath.Base(program), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
