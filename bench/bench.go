package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kubeone/test/lab/fleet"
)

// bench is one run of this program, with the state that its measurements share.
type bench struct {
	options
	log     func(format string, args ...any)
	dir     string     // for files of this run
	lab     *fleet.Lab // nil until a measurement needs it
	applied bool       // kubeone's cluster runs in the lab
}

// newProgress prints lines with the seconds since the call.
func newProgress(w io.Writer) func(format string, args ...any) {
	start := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
}

// createWorkspace makes the run's folder and builds the program to measure.
func (b *bench) createWorkspace(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "kubeone-bench-"); err != nil {
		return err
	}
	return b.buildProduct(ctx)
}

// runMeasurements runs the named measurements, one after the other.
func (b *bench) runMeasurements(ctx context.Context, names []string) (*report, error) {
	r := &report{Format: 1, Machine: thisMachine()}
	of := map[string]func(context.Context) error{
		"start":    func(ctx context.Context) (err error) { r.Start, err = b.measureStart(ctx); return err },
		"plan":     func(ctx context.Context) (err error) { r.Plans, err = b.measurePlans(ctx); return err },
		"install":  func(ctx context.Context) (err error) { r.Install, err = b.measureInstall(ctx); return err },
		"machines": func(ctx context.Context) (err error) { r.Machines, err = b.measureMachines(ctx); return err },
		"noop":     func(ctx context.Context) (err error) { r.Noop, err = b.measureNoop(ctx); return err },
	}
	for _, name := range names {
		b.log("measuring %s", name)
		if err := of[name](ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, nil
}

// removeAll removes everything that the run created.
func (b *bench) removeAll() {
	if b.lab != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := b.lab.Down(ctx); err != nil {
			b.log("lab %s is left behind: %v", b.lab.Name, err)
		}
	}
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// buildProduct builds kubeone like a release: static and stripped.
func (b *bench) buildProduct(ctx context.Context) error {
	if b.kubeone != "" {
		return nil
	}
	b.kubeone = filepath.Join(b.dir, "kubeone")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.kubeone,
		"kubeone/cmd/kubeone")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build kubeone: %w: %s", err, out)
	}
	return nil
}

// productCommand returns a kubeone command that keeps its state in this run's folder.
func (b *bench) productCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.kubeone, args...)
	cmd.Env = append(os.Environ(), "KUBEONE_STATE="+filepath.Join(b.dir, "state"))
	return cmd
}

// withLastLines adds the last printed lines of a program to its error.
func withLastLines(err error, printed string) error {
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	return fmt.Errorf("%w: %s", err, strings.Join(lines[max(0, len(lines)-10):], "\n"))
}

// exitStatus returns the exit status in err. It returns any other error unchanged.
func exitStatus(err error) (int, error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}
