package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kubeone/test/lab/components"
	"kubeone/test/lab/progress"
)

// Logf receives a line of progress, without a newline.
type Logf = progress.Logf

// runDocker runs a docker command and returns its output without the last newline.
func runDocker(ctx context.Context, args ...string) (string, error) {
	return runOutput(exec.CommandContext(ctx, "docker", args...))
}

// runOutput runs a command. Its error contains the command's name, its status and standard error.
func runOutput(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	text := strings.TrimSuffix(stdout.String(), "\n")
	if err == nil {
		return text, nil
	}
	detail := strings.TrimSpace(stderr.String())
	if detail == "" {
		detail = lastLines(text, 15)
	}
	name := strings.Join(cmd.Args, " ")
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	return text, fmt.Errorf("%s: %w: %s", name, err, detail)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// ensureDocker installs docker if it is missing, and starts its daemon if none answers. The daemon outlives this
// process; its log is dockerd.log in the cache.
func ensureDocker(ctx context.Context, cache components.Cache, log Logf) error {
	unlock, err := cache.Lock(ctx, "dockerd")
	if err != nil {
		return err
	}
	defer unlock()
	if err := log.During("installing docker", func() error { return installDocker(ctx) }); err != nil {
		return err
	}
	if dockerAnswers(ctx) {
		return nil
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		if _, err := runOutput(exec.CommandContext(ctx, "systemctl", "start", "docker")); err != nil {
			return err
		}
		return nil
	}
	return log.During("starting dockerd", func() error { return startDockerd(ctx, cache.Path("dockerd.log")) })
}

func installDocker(ctx context.Context) error {
	needed := map[string]string{
		"dockerd":  "docker.io",
		"ssh":      "openssh-client",
		"iptables": "iptables",
		"ip":       "iproute2",
	}
	if err := components.EnsurePackages(ctx, needed); err != nil {
		return err
	}
	// Newer Debian releases have the client in a separate package.
	return components.EnsurePackages(ctx, map[string]string{"docker": "docker-cli"})
}

func startDockerd(ctx context.Context, logPath string) error {
	removeStalePid("/var/run/docker.pid", "dockerd")
	removeStalePid("/var/run/docker/containerd/containerd.pid", "containerd")
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start dockerd: %w", err)
	}
	defer logFile.Close()
	// Not CommandContext: the daemon outlives this process.
	daemon := exec.Command("dockerd")
	daemon.Stdout, daemon.Stderr = logFile, logFile
	daemon.Dir = "/"
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("start dockerd: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- daemon.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !dockerAnswers(ctx) {
		select {
		case err := <-exited:
			return fmt.Errorf("dockerd ended: %w; its log is %s", err, logPath)
		case <-ctx.Done():
			return fmt.Errorf("dockerd did not answer: %w; its log is %s", ctx.Err(), logPath)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

func dockerAnswers(ctx context.Context) bool {
	_, err := runDocker(ctx, "info", "--format", "{{.ServerVersion}}")
	return err == nil
}

// removeStalePid removes a pid file that a dead daemon left behind, even if another program now has its number.
func removeStalePid(path, program string) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
		if err == nil && filepath.Base(exe) == program {
			return
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	os.Remove(path)
}
