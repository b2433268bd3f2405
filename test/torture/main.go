// Command torture interrupts operations of kubeone on a lab. After each interruption the next runs must complete the
// operation: all nodes Ready and schedulable, every etcd member present, nothing left to do. Its suites:
//
//   - install: the operator's process is killed 20 times, and all its SSH connections are cut 20 times, at moments
//     spread over an installation. Then the hosts are reset for the next case.
//   - upgrade: a patch upgrade of 3 + 1 hosts is killed at every step boundary.
//   - repair: a control-plane host is replaced by an empty one; its repair is killed at every step boundary.
//   - reconfigure: settings of kubelets, container runtime and API servers of 3 + 2 hosts change at once; the run is
//     killed at every step boundary.
//
// It prints each result, and records passed cases in a file for each suite. The next call resumes with the others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// settings are the flags.
type settings struct {
	suite string
	only  int
	kills int
	again bool
	state string
}

func main() {
	var s settings
	flag.StringVar(&s.suite, "suite", "", "run this suite alone: "+strings.Join(suiteNames(), ", "))
	flag.IntVar(&s.only, "only", 0, "install: run this case alone, whether it has passed or not")
	list := flag.Bool("list", false, "list the cases of install and stop")
	flag.BoolVar(&s.again, "again", false, "forget what has passed")
	flag.IntVar(&s.kills, "kills", 12, "upgrade, repair, reconfigure: kills before one of them may end")
	flag.StringVar(&s.state, "state", "torture.json",
		"where install notes what has passed; the other suites add their name: torture-upgrade.json")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *list {
		for _, c := range allCases() {
			fmt.Println(c)
		}
		return
	}
	if err := s.runSuites(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		stop()
		os.Exit(1)
	}
}

func suiteNames() []string { return []string{"install", "upgrade", "repair", "reconfigure"} }

// runSuites runs one suite, or all.
func (s settings) runSuites(ctx context.Context) error {
	names := suiteNames()
	if s.suite != "" {
		if !slices.Contains(names, s.suite) {
			return fmt.Errorf("no suite is called %q; there are %s", s.suite, strings.Join(names, ", "))
		}
		names = []string{s.suite}
	}
	if s.kills < 1 {
		return errors.New("-kills is 1 or more")
	}
	if s.only != 0 {
		names = names[:1]
	}
	of := map[string]func(context.Context) error{
		"install": s.tortureInstall, "upgrade": s.tortureUpgrade, "repair": s.tortureRepair,
		"reconfigure": s.tortureReconfigure,
	}
	for _, name := range names {
		printLine("suite %s", name)
		if err := of[name](ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// stateFile returns the suite's state file, and deletes it first if requested.
func (s settings) stateFile(suite string) (string, error) {
	path := s.state
	if suite != "install" {
		path = strings.TrimSuffix(path, ".json") + "-" + suite + ".json"
	}
	if s.again {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return path, err
		}
	}
	return path, nil
}

func printLine(format string, args ...any) { fmt.Printf(format+"\n", args...) }
