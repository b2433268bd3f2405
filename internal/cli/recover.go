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

// recoverFlags holds the flags of recover and etcd restore.
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
		Short: "Restore a cluster that has lost etcd quorum",
		Long: "Restore a cluster that has lost etcd quorum, from a surviving control-plane host, a backup or an\n" +
			"etcd snapshot. The plan stops etcd and the API server on all control-plane hosts and moves their\n" +
			"data to /var/lib/kubeone-old. Then etcd starts with the restored data on one host, and the others\n" +
			"join it.\n\n" +
			"The command refuses to run while etcd has quorum. It also refuses if a control-plane host is\n" +
			"unreachable and not named in --confirm-destroyed, or if a worker holds etcd data or an API server\n" +
			"that may belong to this cluster. To resume an interrupted recovery, run the command again.",
		Example: "  kubeone recover -m kubeone.yaml --from surviving-member --confirm-destroyed cp-2,cp-3\n" +
			"  kubeone recover -m kubeone.yaml --from backups/prod-20261121T040000Z.tar.age --identity key.txt",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.from == "" {
				return &usageError{errors.New("--from is required: surviving-member, a backup or a snapshot"),
					cmd.CommandPath()}
			}
			return runRecover(cmd, stdio, f, args)
		},
	}
	f.registerRecover(cmd)
	cmd.Flags().StringVar(&f.from, "from", "",
		"`SOURCE`: surviving-member, a backup (a file or its address in a backup target), or an etcd snapshot")
	cmd.Flags().StringVar(&f.source.Identity, "identity", "",
		"age private key `FILE` that can decrypt the backup")
	cmd.Flags().BoolVar(&f.source.AllowUnsigned, "allow-unsigned", false,
		"accept a backup signed by an unknown CA, or a bare snapshot where a backup is expected")
	return cmd
}

// newRestoreCommand returns "kubeone etcd restore", which recovers from a snapshot.
func newRestoreCommand(stdio IO) *cobra.Command {
	f := &recoverFlags{}
	cmd := &cobra.Command{
		Use:     "restore SNAPSHOT [MANIFEST]",
		Short:   "Restore a cluster from an etcd snapshot",
		Long:    "Restore a cluster from an etcd snapshot. Same as kubeone recover --from SNAPSHOT.",
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
		"control-plane `HOST` that is permanently lost and cannot be stopped; can be repeated")
	flags.StringVar(&f.on, "host", "", "control-plane `HOST` to start the new etcd on")
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
	if yes, err := f.confirmPlan(stdio, p, "Carry out this recovery?"); err != nil || !yes {
		return err
	}
	var timer recoveryTimer
	after, err := f.carryOutObserved(ctx, stdio, w, p, func(p engine.Proposal) { timer.recordProposal(p, time.Now()) })
	if err != nil {
		return err
	}
	return f.reportRecovery(stdio, after, timer.end.Sub(started))
}

// recoveryTimer measures when all members and Nodes of a cluster are restored. Components on the Nodes, such as cluster
// DNS, may take longer.
type recoveryTimer struct {
	end      time.Time // since when everything is restored; until then, the time of the last check
	restored bool
}

// recordProposal checks a proposal made at the given time.
func (t *recoveryTimer) recordProposal(p engine.Proposal, now time.Time) {
	restored := p.Matches() && !slices.ContainsFunc(p.Pending(nil), func(o engine.Pending) bool {
		return o.Why != engine.NotRunning
	})
	if !restored || !t.restored {
		t.end = now
	}
	t.restored = restored
}

// reportRecovery prints how many Nodes are Ready and how long the recovery took. If steps remain, it shows them and
// returns an error.
func (f *recoverFlags) reportRecovery(stdio IO, after engine.Proposal, took time.Duration) error {
	if f.output == "text" {
		ready, all := countNodes(after.Observed.World)
		_, _ = fmt.Fprintf(stdio.Out, "%d of %d nodes Ready %s after the command started.\n", ready, all,
			took.Round(time.Second))
	}
	if after.Matches() {
		return f.verifyResult(stdio, after)
	}
	if err := f.showPlan(stdio, after, displayOptions{format: formatText, verbose: f.verbose}); err != nil {
		return err
	}
	return &classError{view.ExitRuntime,
		errors.New("the cluster is restored, but the steps listed above remain; run kubeone apply")}
}

// countNodes returns the number of Ready Nodes and of all Nodes.
func countNodes(w observed.World) (ready, all int) {
	for _, n := range w.API.Nodes {
		if n.Ready == observed.Yes {
			ready++
		}
	}
	return ready, len(w.API.Nodes)
}
