package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/engine/maintenance"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// newEtcdCommand returns "kubeone etcd".
func newEtcdCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "etcd", Short: "Maintain etcd: members, snapshots, space, alarms", Args: refuseUnknownCommand,
		Long: "Maintain a cluster's etcd, through its control-plane hosts.\n\n" +
			"Exit status: 0 done; members: 3 when one is not healthy; 11 etcd does not answer or refuses.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newEtcdMembersCommand(stdio), newEtcdSnapshotCommand(stdio), newEtcdDefragmentCommand(stdio),
		newEtcdDisarmCommand(stdio),
		newRestoreCommand(stdio))
	return cmd
}

// etcdFlags are those of the commands that look after etcd.
type etcdFlags struct {
	applyFlags
}

// withEtcd checks the flags, connects, and runs something.
func (f *etcdFlags) withEtcd(cmd *cobra.Command, stdio IO, args []string,
	run func(context.Context, *workspace.Workspace, *maintenance.Etcd) error) error {
	w, err := f.openCluster(cmd.Context(), stdio, args, host.PolicyStrict)
	if err != nil {
		return err
	}
	defer w.Close()
	members, err := maintenance.Open(cmd.Context(), w.Engine)
	if err != nil {
		return err
	}
	defer members.Close()
	return run(cmd.Context(), w, members)
}

func newEtcdMembersCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{}
	cmd := &cobra.Command{
		Use:   "members [MANIFEST]",
		Short: "Show every member: its health, revision, size, alarms, and whether all hold the same",
		Long: "Ask every member how it is, and compare a hash of the keys that each holds at one common revision. " +
			"Hashing reads all keys.",
		Example: "  kubeone etcd members",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				survey, err := members.Survey(ctx)
				if err != nil {
					return err
				}
				doc := view.NewMembersDocument(w.Name(), survey)
				if err := printResult(stdio.Out, f.output, documentOf(doc), doc.Print); err != nil {
					return err
				}
				if !doc.Healthy {
					return &statusError{view.ExitUnhealthy}
				}
				return nil
			})
		},
	}
	f.registerFlags(cmd)
	outputFlag(cmd, &f.output)
	return cmd
}

func newEtcdDefragmentCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{}
	cmd := &cobra.Command{
		Use:   "defragment [MEMBER]",
		Short: "Defragment one etcd member, or all, the leader last",
		Long: "Free the unused space of a member's database: of the one that is named, by its host, its name\n" +
			"or its ID, or of all, one after the other. A member answers nobody while this is done: about ten\n" +
			"seconds for each GiB. Followers come first, the leader last, and the next one only when all are\n" +
			"healthy; otherwise it stops.",
		Example: "  kubeone etcd defragment\n" +
			"  kubeone etcd defragment cp-2",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withEtcd(cmd, stdio, nil, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				doc := view.DefragmentDocument{
					Format: view.EtcdFormat, Cluster: w.Name(), Members: []view.DefragmentedReport{},
				}
				err := members.Defragment(ctx, firstArgument(args), f.forceUnlock, func(d etcd.Defragmented) {
					doc.Add(d)
					_, _ = fmt.Fprintln(stdio.Err, doc.Last())
				})
				if err != nil {
					return err
				}
				return printResult(stdio.Out, f.output, documentOf(doc), doc.Print)
			})
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().BoolVar(&f.forceUnlock, "force-unlock", false, "take over the lock of another run")
	outputFlag(cmd, &f.output)
	return cmd
}

func newEtcdDisarmCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{}
	all := false
	cmd := &cobra.Command{
		Use: "disarm [MEMBER]", Short: "Clear etcd's alarms once their cause is removed",
		Long: "Clear the alarms of a member, or of all, so that etcd accepts writes again. A member is named by\n" +
			"its host, its name or its ID. It refuses as long as a database is as large as it may be (defragment\n" +
			"first), and for an alarm of corruption (replace that member).",
		Example: "  kubeone etcd disarm",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return &usageError{fmt.Errorf("--all and the member %q exclude each other", args[0]), cmd.CommandPath()}
			}
			return f.withEtcd(cmd, stdio, nil, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				done, err := members.Disarm(ctx, firstArgument(args), f.forceUnlock)
				if err != nil {
					return err
				}
				doc := view.NewDisarmDocument(w.Name(), done)
				return printResult(stdio.Out, f.output, documentOf(doc), doc.Print)
			})
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "clear the alarms of all members, the default without MEMBER")
	cmd.Flags().BoolVar(&f.forceUnlock, "force-unlock", false, "take over the lock of another run")
	outputFlag(cmd, &f.output)
	return cmd
}

// firstArgument is the first argument, "" without one.
func firstArgument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
