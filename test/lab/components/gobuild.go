package components

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// goVersion is the language version of the module for each build. It must not be newer than the oldest supported Go
// release.
const goVersion = "1.25.0"

// binariesDir returns the directory with the recipe's binaries. If the cache lacks them, it downloads them, or builds
// them from source if a download fails.
func (b *Builder) binariesDir(ctx context.Context, r Recipe) (string, error) {
	key := r.Name + "-" + r.Version + "-" + r.Digest()
	if built := b.Cache.Path("bin", key); fileExists(built) {
		return built, nil
	}
	if len(r.Downloads) > 0 && b.Downloads != "" && b.Downloads != noDownloads {
		dir, err := b.downloadedDir(ctx, r)
		if err == nil || ctx.Err() != nil {
			return dir, err
		}
		if b.Log != nil {
			b.Log("%v", err)
			b.Log("building %s %s from source", r.Name, r.Version)
		}
	}
	return b.Cache.Entry(ctx, "bin", key, func(dir string) error { return b.goBuild(ctx, r, dir) })
}

// goBuild builds the recipe into dir. It writes a module that requires the recipe's module and repeats its replace
// directives and checksums, because the go command ignores those of a dependency.
func (b *Builder) goBuild(ctx context.Context, r Recipe, dir string) error {
	work := b.Cache.Path("work", r.Name+"-"+r.Version)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	source, err := downloadModule(ctx, r.Module, r.Version)
	if err != nil {
		return err
	}
	if r.CGO {
		libraries := map[string]string{
			"gcc":                    "gcc",
			"/usr/include/stdlib.h":  "libc6-dev",
			"pkg-config":             "pkg-config",
			"/usr/include/seccomp.h": "libseccomp-dev",
		}
		if err := EnsurePackages(ctx, libraries); err != nil {
			return err
		}
	}
	if err := writeModule(ctx, r, source, work); err != nil {
		return err
	}
	args := []string{"go", "build", "-mod=mod", "-trimpath", "-buildvcs=false", "-o", dir + "/", "-ldflags",
		"-s -w " + r.LDFlags, "-tags", r.Tags}
	for _, pkg := range r.Packages {
		args = append(args, pkg)
	}
	cmd := exec.CommandContext(ctx, "nice", args...)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if r.CGO {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if err := runCommand(cmd); err != nil {
		return fmt.Errorf("build %s@%s: %w", r.Module, r.Version, err)
	}
	for name, pkg := range r.Packages {
		if err := os.Rename(filepath.Join(dir, programName(pkg)), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// programName returns the go command's name for the program of a main package.
func programName(pkg string) string {
	if majorVersion.MatchString(path.Base(pkg)) {
		pkg = path.Dir(pkg)
	}
	return path.Base(pkg)
}

// downloadModule downloads a module into Go's module cache and returns its directory.
func downloadModule(ctx context.Context, module, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr != nil && err == nil {
		err = jsonErr
	}
	if answer.Error != "" {
		return "", fmt.Errorf("download %s@%s: %s", module, version, answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s@%s: %w", module, version, err)
	}
	return answer.Dir, nil
}

// writeModule writes go.mod and go.sum for the build of a recipe.
func writeModule(ctx context.Context, r Recipe, source, work string) error {
	cmd := exec.CommandContext(ctx, "go", "mod", "edit", "-json", filepath.Join(source, "go.mod"))
	cmd.Dir = work
	edit, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("read go.mod of %s@%s: %w", r.Module, r.Version, err)
	}
	text, err := moduleFile(r, edit)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "go.mod"), text, 0o644); err != nil {
		return err
	}
	if err := writeStubs(r, work); err != nil {
		return err
	}
	return copyIfExists(filepath.Join(source, "go.sum"), filepath.Join(work, "go.sum"))
}

// writeStubs writes the modules that stand in for unpublished ones.
func writeStubs(r Recipe, work string) error {
	for module, source := range r.Stubs {
		dir := filepath.Join(work, filepath.FromSlash(stubFolder(module)))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		file := fmt.Sprintf("module %s\n\ngo %s\n", module, goVersion)
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(file), 0o644); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "stub.go"), []byte(source), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func copyIfExists(from, to string) error {
	in, err := os.Open(from)
	if os.IsNotExist(err) {
		return os.WriteFile(to, nil, 0o644)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// runCommand runs a command. Its error contains the end of the output.
func runCommand(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) > 30 {
		lines = lines[len(lines)-30:]
	}
	return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.Join(lines, "\n"))
}
