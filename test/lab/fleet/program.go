package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"kubeone/test/lab/components"
)

// BuildKubeone builds the product from the module that this program's working directory is in, and returns the
// program's path. It is built as a release is, and fast when nothing has changed.
func BuildKubeone(ctx context.Context, cache components.Cache) (string, error) {
	module, err := moduleDir(ctx)
	if err != nil {
		return "", err
	}
	unlock, err := cache.Lock(ctx, "kubeone")
	if err != nil {
		return "", err
	}
	defer unlock()
	program := cache.Path("bin", "kubeone")
	return program, buildProgram(ctx, module, "./cmd/kubeone", program)
}

// moduleDir is the root of the module that the working directory is in, which is that of its repository too.
func moduleDir(ctx context.Context) (string, error) {
	module, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "kubeone"))
	if err != nil {
		return "", fmt.Errorf("find the kubeone module from the working directory: %w", err)
	}
	return strings.TrimSpace(module), nil
}

func buildProgram(ctx context.Context, source, folder, program string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, folder)
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if _, err := output(build); err != nil {
		return fmt.Errorf("build %s: %w", folder, err)
	}
	return nil
}
