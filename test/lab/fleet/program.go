package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"kubeone/test/lab/components"
)

// BuildKubeone builds kubeone like a release, from the module of the working directory, and returns the program's path.
// Each checkout has its own program. It is fast if nothing has changed.
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
	sum := sha256.Sum256([]byte(module))
	program := cache.Path("bin", "kubeone-"+hex.EncodeToString(sum[:4]))
	return program, buildProgram(ctx, module, "./cmd/kubeone", program)
}

// moduleDir returns the root of the working directory's module, which is also the root of the repository.
func moduleDir(ctx context.Context) (string, error) {
	module, err := runOutput(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "kubeone"))
	if err != nil {
		return "", fmt.Errorf("find the kubeone module from the working directory: %w", err)
	}
	return strings.TrimSpace(module), nil
}

func buildProgram(ctx context.Context, source, folder, program string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, folder)
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if _, err := runOutput(build); err != nil {
		return fmt.Errorf("build %s: %w", folder, err)
	}
	return nil
}
