package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/maintenance"
	"kubeone/internal/script"
	"kubeone/internal/workspace"
)

// newEtcdCommand returns "kubeone etcd".
func newEtcdCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "etcd", Short: "Look after etcd: members, snapshots, space, alarms", Args: subcommand,
		Long: "Look after a cluster's etcd, through its control-plane hosts.\n\n" +
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
	w, err := f.open(cmd.Context(), stdio, args, host.PolicyStrict)
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
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				survey, err := members.Survey(ctx)
				if err != nil {
					return err
				}
				doc := membersDocument(w.Name(), survey)
				if err := printEtcd(stdio, f.output, doc, doc.print); err != nil {
					return err
				}
				if !doc.Healthy {
					return &statusError{exitUnhealthy}
				}
				return nil
			})
		},
	}
	f.register(cmd)
	outputFlag(cmd, &f.output, "text or json")
	return cmd
}

func newEtcdSnapshotCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{}
	var file string
	var onHosts bool
	cmd := &cobra.Command{
		Use: "snapshot [MANIFEST]", Short: "Save a verified snapshot of etcd here, or on the control-plane hosts",
		Long: "Save a snapshot of etcd in a file that only you read, checked to its last byte: checksum,\n" +
			"consistency, revision and keys. It holds every Secret of the cluster unencrypted; kubeone backup\n" +
			"writes an encrypted one, with all else that a cluster cannot be brought back without.\n\n" +
			"With --on-hosts each control-plane host takes one of its own member and keeps it in\n" +
			script.SnapshotDir + ", and its timer for the scheduled ones becomes that of the manifest\n" +
			"(backup.schedule, backup.keep).",
		Example: "  kubeone etcd snapshot -m kubeone.yaml --file before-the-change.db\n" +
			"  kubeone etcd snapshot -m kubeone.yaml --on-hosts",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if onHosts {
				return runSnapshotsOnHosts(cmd, stdio, f, args)
			}
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				return runSnapshot(ctx, stdio, f, file, w, members)
			})
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&file, "file", "f", ".", "the file to write, or a folder in which it gets a name of its own")
	flags.BoolVar(&onHosts, "on-hosts", false, "take one on every control-plane host, and keep it there")
	flags.BoolVar(&f.forceUnlock, "force-unlock", false, "with --on-hosts: take the lock over from another run")
	outputFlag(cmd, &f.output, "text or json; with --on-hosts json is the event stream")
	cmd.MarkFlagsMutuallyExclusive("file", "on-hosts")
	return cmd
}

func runSnapshot(ctx context.Context, stdio IO, f *etcdFlags, file string, w *workspace.Workspace,
	members *maintenance.Etcd) error {
	if members.Alone() {
		_, _ = fmt.Fprintf(stdio.Err, "warning: etcd has no quorum: the snapshot has what the member on %s last knew\n",
			members.Via())
	}
	path, info, err := w.SaveSnapshot(ctx, members, file)
	if err != nil {
		return err
	}
	doc := SnapshotDocument{Format: EtcdFormat, Cluster: w.Name(), File: path, Via: members.Via(), Snapshot: info}
	return printEtcd(stdio, f.output, doc, doc.print)
}

// runSnapshotsOnHosts takes snapshots where they stay. It asks nothing: it only adds files of our own.
func runSnapshotsOnHosts(cmd *cobra.Command, stdio IO, f *etcdFlags, args []string) error {
	ctx := cmd.Context()
	w, err := f.open(ctx, stdio, args, host.PolicyStrict)
	if err != nil {
		return err
	}
	defer w.Close()
	p, err := w.Engine.Propose(ctx, engine.Snapshots{})
	if err != nil {
		return err
	}
	for _, note := range p.Plan.Notes {
		_, _ = fmt.Fprintf(stdio.Err, "warning: %s\n", note)
	}
	_, err = f.carryOut(ctx, stdio, w, p)
	if err == nil && f.output == "text" {
		_, _ = fmt.Fprintf(stdio.Out, "Done. %d hosts have a new snapshot in %s.\n", len(p.Plan.Steps),
			script.SnapshotDir)
	}
	return err
}

func newEtcdDefragmentCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{}
	cmd := &cobra.Command{
		Use:   "defragment [MANIFEST]",
		Short: "Give the unused space of every member back, one after the other, the leader last",
		Long: "Give the unused space of every member's database back. A member answers nobody while this is done:\n" +
			"about ten seconds for each GiB. Followers come first, the leader last, and the next one only when\n" +
			"all are healthy; otherwise it stops.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				doc := DefragmentDocument{Format: EtcdFormat, Cluster: w.Name(), Members: []DefragmentedReport{}}
				err := members.Defragment(ctx, f.forceUnlock, func(d etcd.Defragmented) {
					doc.add(d)
					_, _ = fmt.Fprintln(stdio.Err, doc.last())
				})
				if err != nil {
					return err
				}
				return printEtcd(stdio, f.output, doc, doc.print)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.forceUnlock, "force-unlock", false, "take the lock over from another run")
	outputFlag(cmd, &f.output, "text or json")
	return cmd
}

func newEtcdDisarmCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{}
	cmd := &cobra.Command{
		Use: "disarm [MANIFEST]", Short: "Take alarms back, once their cause is gone",
		Long: "Take the alarms of all members back, so that etcd is written to again. It refuses as long as a\n" +
			"database is as large as it may be (defragment first), and for an alarm of corruption (replace that\n" +
			"member).",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				done, err := members.Disarm(ctx, f.forceUnlock)
				if err != nil {
					return err
				}
				doc := disarmDocument(w.Name(), done)
				return printEtcd(stdio, f.output, doc, doc.print)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.forceUnlock, "force-unlock", false, "take the lock over from another run")
	outputFlag(cmd, &f.output, "text or json")
	return cmd
}
