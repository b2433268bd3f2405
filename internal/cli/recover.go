package cli

import (
	"errors"
	"fmt"
	"kubeone/internal/view"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/model/observed"
	"kubeone/internal/workspace"
)

// recoverFlags are the flags of recover and of etcd restore.
type recoverFlags struct {
	applyFlags
	from, on  string
	source    workspace.SourceOptions
	destroyed []string
}

// newRecoverCommand returns "kubeone recover".
func newRecoverCommand(stdio IO) *cobra.Command {
	f := &recoverFlags{}
	cmd := &cobra.Command{
		Use:   "recover --from surviving-member|BACKUP|SNAPSHOT [MANIFEST]",
		Short: "Restore a cluster whose etcd has lost its quorum",
		Long: "Bring a cluster back whose etcd has lost its quorum: from what a surviving control-plane host has,\n" +
			"from a backup, or from a snapshot of etcd. etcd and API server are stopped on all control-plane\n" +
			"hosts, their data is moved aside and kept in /var/lib/kubeone-old, etcd begins anew on one host, and\n" +
			"the others join it. A plan is shown first.\n\n" +
			"It refuses while the quorum is there, when a control-plane host cannot be reached that was not\n" +
			"confirmed as destroyed, and while a worker of the manifest has data of etcd or an API server that\n" +
			"may be this cluster's. Interrupted, it goes on when it is run again.",
		Example: "  kubeone recover -m kubeone.yaml --from surviving-member --confirm-destroyed cp-2,cp-3\n" +
			"  kubeone recover -m kubeone.yaml --from backups/prod-20261121T040000Z.tar.age --identity key.txt",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.from == "" {
				return &usageError{errors.New("--from is missing: surviving-member, a backup or a snapshot"),
					cmd.CommandPath()}
			}
			return runRecover(cmd, stdio, f, args)
		},
	}
	f.registerRecover(cmd)
	cmd.Flags().StringVar(&f.from, "from", "",
		"`SOURCE`: surviving-member, a backup (a file, or its address in a target), or a snapshot of etcd")
	cmd.Flags().StringVar(&f.source.Identity, "identity", "",
		"`FILE` of a private key that the backup is encrypted to, as age-keygen writes it")
	cmd.Flags().BoolVar(&f.source.AllowUnsigned, "allow-unsigned", false,
		"accept a backup whose CA is not known here, and a bare snapshot in the place of a backup")
	return cmd
}

// newRestoreCommand returns "kubeone etcd restore", which is recover from a snapshot.
func newRestoreCommand(stdio IO) *cobra.Command {
	f := &recoverFlags{}
	cmd := &cobra.Command{
		Use:     "restore SNAPSHOT [MANIFEST]",
		Short:   "Restore a cluster from a snapshot (the same as recover --from SNAPSHOT)",
		Example: "  kubeone etcd restore before-the-change.db -m kubeone.yaml",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.from = args[0]
			return runRecover(cmd, stdio, f, args[1:])
		},
	}
	f.registerRecover(cmd)
	return cmd
}

func (f *recoverFlags) registerRecover(cmd *cobra.Command) {
	f.registerFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.destroyed, "confirm-destroyed", nil,
		"control-plane `HOST` that is lost for good, so that etcd need not be stopped there; can be repeated")
	flags.StringVar(&f.on, "host", "", "control-plane `HOST` on which etcd starts again")
	f.completeHostFlag(cmd, "host")
	f.completeHostFlag(cmd, "confirm-destroyed")
	f.artifacts.registerFlags(cmd)
	parallelFlag(cmd, &f.parallel)
	f.registerRun(cmd)
	f.registerUnsupported(cmd)
}

func runRecover(cmd *cobra.Command, stdio IO, f *recoverFlags, args []string) error {
	started := time.Now()
	ctx := cmd.Context()
	w, err := f.openCluster(ctx, stdio, args, f.unknownKeysPolicy())
	if err != nil {
		return err
	}
	defer w.Close()
	source, err := w.OpenSource(ctx, f.from, f.source)
	if err != nil {
		return err
	}
	defer source.Close()
	r := source.Request()
	r.Destroyed = w.MemberNames(f.destroyed...)
	if f.on != "" {
		ids, err := w.HostIDs("--host", f.on)
		if err != nil {
			return err
		}
		r.On = ids[0]
	}
	p, err := proposeWhenIdle(ctx, stdio, w.Engine, r)
	if err != nil {
		return err
	}
	if yes, err := f.confirmPlan(stdio, p, "Bring the cluster back like this?"); err != nil || !yes {
		return err
	}
	var back comeback
	after, err := f.carryOutSeen(ctx, stdio, w, p, func(p engine.Proposal) { back.observe(p, time.Now()) })
	if err != nil {
		return err
	}
	return f.reportRecovery(stdio, after, back.at.Sub(started))
}

// comeback notes since when the looks at a recovered cluster find its members and Nodes back, whatever runs on them;
// where the last one does not, when that was.
type comeback struct {
	at    time.Time
	whole bool
}

func (c *comeback) observe(p engine.Proposal, now time.Time) {
	whole := p.Matches() && !slices.ContainsFunc(p.Pending(nil), func(o engine.Pending) bool {
		return o.Why != engine.NotRunning
	})
	if !whole || !c.whole {
		c.at = now
	}
	c.whole = whole
}

// reportRecovery says how far the cluster is back.
func (f *recoverFlags) reportRecovery(stdio IO, after engine.Proposal, took time.Duration) error {
	if f.output == "text" {
		ready, all := readyNodes(after.Observed.World)
		_, _ = fmt.Fprintf(stdio.Out, "%d of %d nodes Ready %s after the command was given.\n", ready, all,
			took.Round(time.Second))
	}
	if after.Matches() {
		return f.verifyResult(stdio, after)
	}
	if err := f.showPlan(stdio, after, shownAs{format: formatText, verbose: f.verbose}); err != nil {
		return err
	}
	return &classError{view.ExitRuntime,
		errors.New("the cluster is back; what is left is listed above, and kubeone apply does its part of it")}
}

func readyNodes(w observed.World) (ready, all int) {
	for _, n := range w.API.Nodes {
		if n.Ready == observed.Yes {
			ready++
		}
	}
	return ready, len(w.API.Nodes)
}
