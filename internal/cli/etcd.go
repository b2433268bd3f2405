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
		Use: "etcd", Short: "Maintain etcd: members, snapshots, disk space and alarms", Args: refuseUnknownCommand,
		Long: "Maintain etcd through the control-plane hosts of the cluster.\n\n" +
			"Exit status: 0 on success, 3 if a member is not healthy (etcd members only), 11 if etcd does not\n" +
			"respond or rejects the request.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newEtcdMembersCommand(stdio), newEtcdSnapshotCommand(stdio), newEtcdDefragmentCommand(stdio),
		newEtcdDisarmCommand(stdio),
		newRestoreCommand(stdio))
	return cmd
}

// etcdFlags holds the flags of commands that maintain etcd.
type etcdFlags struct {
	applyFlags
}

// withEtcd connects to the cluster and its etcd, calls run, and closes the connections.
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
		Short: "Show the health of etcd members",
		Long: "Show the health, revision, size and alarms of every etcd member, and whether all members hold the\n" +
			"same data. To compare the data, each member hashes all its keys at a common revision.\n\n" +
			"Exit status: 0 if all members are healthy, 3 if a member is not.",
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
				if err := printResult(stdio.Out, f.output, jsonEncoder(doc), doc.Print); err != nil {
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
		Short: "Defragment etcd members",
		Long: "Release unused space in the database of MEMBER, or of all members, one at a time. MEMBER is\n" +
			"the name of a host, or the name or ID of a member. A member does not respond while it is being\n" +
			"defragmented, for about ten seconds per GiB. The leader is defragmented last. Before each member,\n" +
			"the command checks that all members are healthy, and stops if one is not.",
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
				return printResult(stdio.Out, f.output, jsonEncoder(doc), doc.Print)
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
		Use: "disarm [MEMBER]", Short: "Clear etcd alarms",
		Long: "Clear the alarms of MEMBER, or of all members, so that etcd accepts writes again. MEMBER is the name\n" +
			"of a host, or the name or ID of a member. Fix the cause first: the command fails while a database is\n" +
			"at its size limit (defragment it) and while there is a corruption alarm (replace the member).",
		Example: "  kubeone etcd disarm",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return &usageError{fmt.Errorf("use either --all or the member %q", args[0]), cmd.CommandPath()}
			}
			return f.withEtcd(cmd, stdio, nil, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				done, err := members.Disarm(ctx, firstArgument(args), f.forceUnlock)
				if err != nil {
					return err
				}
				doc := view.NewDisarmDocument(w.Name(), done)
				return printResult(stdio.Out, f.output, jsonEncoder(doc), doc.Print)
			})
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "clear the alarms of all members (the default without MEMBER)")
	cmd.Flags().BoolVar(&f.forceUnlock, "force-unlock", false, "take over the lock of another run")
	outputFlag(cmd, &f.output)
	return cmd
}

// firstArgument returns the first argument, or "" if there is none.
func firstArgument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
