// Command library makes several clusters what their manifests say, all at the same time and in one process, to show how
// a program uses the engine:
//
//	library MANIFEST=BUNDLE...
//
// Each cluster has an engine of its own; they share nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"kubeone/internal/apply"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/workspace"
)

func main() {
	if err := reconcileAll(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// reconcileAll reconciles every cluster, and joins what failed.
func reconcileAll(ctx context.Context, out io.Writer, clusters []string) error {
	var wait sync.WaitGroup
	var say sync.Mutex
	errs := make([]error, len(clusters))
	for i, cluster := range clusters {
		manifest, bundle, _ := strings.Cut(cluster, "=")
		wait.Go(func() {
			errs[i] = reconcile(ctx, manifest, bundle, func(name, what string) {
				say.Lock()
				defer say.Unlock()
				fmt.Fprintf(out, "%s: %s\n", name, what)
			})
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// reconcile makes one cluster what its manifest says.
func reconcile(ctx context.Context, manifest, bundle string, say func(name, what string)) error {
	w, err := workspace.Open(ctx, workspace.Options{
		Manifest: manifest,
		Bundles:  []string{bundle},
		NewHosts: host.PolicyProbe,
	})
	if err != nil {
		return err
	}
	defer w.Close()
	p, err := w.Engine.Propose(ctx, engine.Apply{})
	if err != nil {
		return fmt.Errorf("%s: %w", w.Name(), err)
	}
	say(w.Name(), fmt.Sprintf("%s, %d steps", p.Decision().Route, len(p.Plan.Steps)))
	after, err := w.Engine.CarryOut(ctx, p, engine.RunOptions{Emit: func(e apply.Event) {
		if e.Type == apply.StepDone {
			say(w.Name(), e.Host+" "+e.Title)
		}
	}})
	if err != nil {
		return fmt.Errorf("%s: %w", w.Name(), err)
	}
	if !after.Matches() {
		return fmt.Errorf("%s: still differs from its manifest", w.Name())
	}
	say(w.Name(), "matches its manifest")
	return nil
}
