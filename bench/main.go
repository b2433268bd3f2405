// Command bench measures kubeone against its budgets. `go run ./bench` runs every measurement, an argument selects one.
// docs/bench.md explains them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// options are the flags, common to all measurements.
type options struct {
	output   string
	repeat   int
	maxRatio float64
	check    bool
	hosts    sizes
	machines sizes
	kubeone  string
	labName  string

	controlPlanes, workers int // hosts of the lab
	addons, releases       int // in the cluster of noop
}

// errOver means that a measurement succeeded but exceeds a limit.
var errOver = errors.New("over a limit, as printed above")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runBench(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		stop()
		os.Exit(1)
	}
}

// measurementNames returns all names, in the order in which they run.
func measurementNames() []string {
	return []string{"start", "plan", "install", "noop", "machines"}
}

func runBench(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == simulatedHosts {
		return serveHosts(ctx, args[1:], os.Stdin, os.Stdout)
	}
	if len(args) > 0 && args[0] == fakeControllers {
		return runFakeControllers(ctx, args[1:], os.Stdin, os.Stdout)
	}
	if len(args) > 0 && args[0] == oneLook {
		return printLook(ctx, args[1:], os.Stdout)
	}
	names := measurementNames()
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		names, args = args[:1], args[1:]
		if !slices.Contains(measurementNames(), names[0]) {
			return fmt.Errorf("no measurement is called %q; there are %v", names[0], measurementNames())
		}
	}
	o, err := parseOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	b := &bench{options: o, log: newProgress(os.Stderr)}
	defer b.removeAll()
	if err := b.createWorkspace(ctx); err != nil {
		return err
	}
	report, err := b.runMeasurements(ctx, names)
	if err != nil {
		return err
	}
	if err := report.printTo(os.Stdout, o.output); err != nil {
		return err
	}
	return report.checkLimits(o)
}

func parseOptions(args []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench [start|plan|install|noop|machines]", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.StringVar(&o.output, "o", "text", "text or json")
	flags.IntVar(&o.repeat, "repeat", 1, "install: pairs of runs, by hand and with kubeone in turn")
	flags.Float64Var(&o.maxRatio, "max-ratio", 0,
		"install: fail when kubeone takes more than this share of the time by hand; 0 for no limit")
	flags.BoolVar(&o.check, "check", false, "start, plan, noop, machines: fail when over a limit")
	o.hosts = sizes{1000, 5000}
	flags.Var(&o.hosts, "hosts", "plan: hosts to simulate, once for each of these numbers")
	o.machines = sizes{1000, 5000}
	flags.Var(&o.machines, "machines", "machines: how many, once for each of these numbers")
	flags.StringVar(&o.kubeone, "kubeone", "", "the program to measure; it is built when this is not given")
	flags.StringVar(&o.labName, "lab", "bench", "install, noop: name of the lab, which is made and removed")
	flags.IntVar(&o.controlPlanes, "control-planes", 3, "install, noop: control-plane hosts")
	flags.IntVar(&o.workers, "workers", 1, "install, noop: workers")
	flags.IntVar(&o.addons, "addons", 0, "noop: addons of five objects each in the cluster")
	flags.IntVar(&o.releases, "releases", 0, "noop: Helm releases of five objects each in the cluster")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.output != "text" && o.output != "json" {
		return o, fmt.Errorf("-o is text or json, not %q", o.output)
	}
	if o.repeat < 1 || o.hosts[0] < 10 || o.controlPlanes < 1 || o.workers < 0 {
		return o, errors.New("-repeat is 1 or more, -hosts 10 or more, -control-planes 1 or more")
	}
	return o, nil
}
