package components

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
)

// pauseSource is compiled from its text, so that a cache can be filled from any directory.
//
//go:embed pause/main.go
var pauseSource []byte

// pauseBinary returns the directory of the pause program.
func (b *Builder) pauseBinary(ctx context.Context) (string, error) {
	return b.Cache.Entry(ctx, "bin", "pause-"+digestOf(string(pauseSource), Recipe{}.Digest()), func(dir string) error {
		work := b.Cache.Path("work", "pause")
		if err := os.MkdirAll(work, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(work, "main.go"), pauseSource, 0o644); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o",
			filepath.Join(dir, "pause"), "main.go")
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GO111MODULE=off")
		return runCommand(cmd)
	})
}
