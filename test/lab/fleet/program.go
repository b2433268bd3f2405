package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// BuildKubeoneAt builds the product as it was at a commit, given by its whole name, from the history of the repository
// that this program's working directory is in, and returns the program's path. It is built once.
func BuildKubeoneAt(ctx context.Context, cache components.Cache, commit string) (string, error) {
	dir, err := cache.Entry(ctx, "programs", commit+"-kubeone", func(dir string) error {
		repository, err := moduleDir(ctx)
		if err != nil {
			return err
		}
		return buildAt(ctx, repository, commit, "./cmd/kubeone", filepath.Join(dir, "kubeone"))
	})
	return filepath.Join(dir, "kubeone"), err
}

// BundleAt is Bundle with a bundle that the product as it was at a commit has made.
func BundleAt(ctx context.Context, cache components.Cache, commit, version string, log Logf) (string, error) {
	program := func(ctx context.Context, cache components.Cache) (string, error) {
		return BuildKubeoneAt(ctx, cache, commit)
	}
	made := bundleBy{kind: "bundles-" + commit, writer: "own", program: program}
	return made.bundle(ctx, cache, version, log)
}

// moduleDir is the root of the module that the working directory is in, which is that of its repository too.
func moduleDir(ctx context.Context) (string, error) {
	module, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "kubeone"))
	if err != nil {
		return "", fmt.Errorf("find the kubeone module from the working directory: %w", err)
	}
	return strings.TrimSpace(module), nil
}

// buildAt builds a program of a commit. The repository and its worktrees are only read.
func buildAt(ctx context.Context, repository, commit, folder, program string) error {
	if _, err := output(exec.CommandContext(ctx, "git", "-C", repository, "cat-file", "-e",
		commit+"^{commit}")); err != nil {
		return fmt.Errorf("the program of commit %s is built from this repository's history, which lacks that commit; "+
			"a shallow clone gets it with \"git fetch --unshallow\": %w", commit, err)
	}
	dir, err := os.MkdirTemp("", "kubeone-source-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	archive, source := filepath.Join(dir, "source.tar"), filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return err
	}
	for _, cmd := range []*exec.Cmd{
		exec.CommandContext(ctx, "git", "-C", repository, "archive", "--output="+archive, commit),
		exec.CommandContext(ctx, "tar", "-x", "-f", archive, "-C", source),
	} {
		if _, err := output(cmd); err != nil {
			return fmt.Errorf("the source of commit %s: %w", commit, err)
		}
	}
	return buildProgram(ctx, source, folder, program)
}

func buildProgram(ctx context.Context, source, folder, program string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, folder)
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if _, err := output(build); err != nil {
		return fmt.Errorf("build %s: %w", folder, err)
	}
	return nil
}
