package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// parallelFlag adds --parallel. The default is 32.
func parallelFlag(cmd *cobra.Command, into *int) {
	*into = 32
	cmd.Flags().Var((*countValue)(into), "parallel", "maximum `NUMBER` of hosts to work on at a time")
}

// countValue is a flag value of at least 1. Other values are rejected when the command line is parsed, before any host
// is contacted.
type countValue int

// String returns the value.
func (c *countValue) String() string { return strconv.Itoa(int(*c)) }

// Set parses the value.
func (c *countValue) Set(value string) error {
	count, err := strconv.Atoi(value)
	if err != nil || count < 1 {
		return fmt.Errorf("%q is not a number of at least 1", value)
	}
	*c = countValue(count)
	return nil
}

// Type returns the placeholder in the help.
func (*countValue) Type() string { return "NUMBER" }

// registerRun adds the flags of commands that carry out a plan.
func (f *applyFlags) registerRun(cmd *cobra.Command) {
	groupFlags(cmd, runGroup, func() {
		flags := cmd.Flags()
		flags.BoolVarP(&f.approve, "auto-approve", "y", false,
			"skip confirmation and record SSH host keys seen for the first time")
		flags.BoolVar(&f.dryRun, "dry-run", false, "show the plan and exit without making changes")
		flags.BoolVar(&f.forceUnlock, "force-unlock", false, "take over the lock of another run")
		flags.StringVar(&f.logFile, "log-file", "", "also write the journal of the run to `FILE`")
		eventsFlag(cmd, &f.output)
	})
}
