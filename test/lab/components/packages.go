package components

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sort"
)

// EnsurePackages installs the Debian packages (the values) whose program (the key: a name in PATH, or an absolute path)
// is missing on this machine.
func EnsurePackages(ctx context.Context, packages map[string]string) error {
	var missing []string
	for program, name := range packages {
		if !isInstalled(program) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	sort.Strings(missing)
	install := append([]string{"install", "-y", "-q", "--no-install-recommends"}, missing...)
	if err := runCommand(aptGet(ctx, install...)); err == nil {
		return nil
	}
	if err := runCommand(aptGet(ctx, "update", "-q")); err != nil {
		return fmt.Errorf("install %v: %w", missing, err)
	}
	if err := runCommand(aptGet(ctx, install...)); err != nil {
		return fmt.Errorf("install %v: %w", missing, err)
	}
	return nil
}

func isInstalled(program string) bool {
	if program[0] == '/' {
		return fileExists(program)
	}
	for _, dir := range []string{"", "/usr/sbin/", "/sbin/"} {
		if _, err := exec.LookPath(dir + program); err == nil {
			return true
		}
	}
	return false
}

func aptGet(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd
}
