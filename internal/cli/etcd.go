package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
)

// newEtcdCommand returns "kubeone etcd".
func newEtcdCommand(stdio IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "etcd", Short: "Look after etcd: members, snapshots, space, alarms", Args: subcommand,
		Long: "Look after a cluster's etcd, through its control-plane hosts.\n\nExit status: 0 done; members: 3 when one is not healthy; 11 etcd does not answer or refuses.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newEtcdMembersCommand(stdio), newEtcdSnapshotCommand(stdio), newEtcdDefragmentCommand(stdio), newEtcdDisarmCommand(stdio),
		newRestoreCommand(stdio))
	return cmd
}

// etcdFlags are those of the commands that look after etcd.
type etcdFlags struct {
	applyFlags
}

// withEtcd checks the flags, connects, and runs something.
func (f *etcdFlags) withEtcd(cmd *cobra.Command, stdio IO, args []string, run func(context.Context, *engine.Engine, *engine.Etcd) error) error {
	e, err := f.open(cmd.Context(), stdio, args, host.PolicyStrict)
	if err != nil {
		return err
	}
	defer e.Close()
	members, err := e.OpenEtcd(cmd.Context())
	if err != nil {
		return err
	}
	defer members.Close()
	return run(cmd.Context(), e, members)
}

func newEtcdMembersCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{applyFlags{clusterFlags: clusterFlags{lookOnly: true}}}
	cmd := &cobra.Command{
		Use: "members [MANIFEST]", Short: "Show every member: its health, revision, size, alarms, and whether all hold the same",
		Long: "Ask every member how it is, and compare a hash of the keys that each holds at one common revision. Hashing reads all keys.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, e *engine.Engine, members *engine.Etcd) error {
				survey, err := members.Survey(ctx)
				if err != nil {
					return err
				}
				doc := membersDocument(e.Want().Name, survey)
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
	f := &etcdFlags{applyFlags{clusterFlags: clusterFlags{lookOnly: true}}}
	var file string
	var onHosts bool
	cmd := &cobra.Command{
		Use: "snapshot [MANIFEST]", Short: "Save a verified snapshot of etcd here, or on the control-plane hosts",
		Long: "Save a snapshot of etcd in a file that only you read, checked to its last byte: checksum, consistency, revision and keys.\n" +
			"It holds every Secret of the cluster unencrypted; kubeone backup writes an encrypted one, with all else that a cluster\n" +
			"cannot be brought back without.\n\n" +
			"With --on-hosts each control-plane host takes one of its own member and keeps it in " + engine.SnapshotDir + ", and its\n" +
			"timer for the scheduled ones becomes that of the manifest (backup.schedule, backup.keep).",
		Example: "  kubeone etcd snapshot -m kubeone.yaml --file before-the-change.db\n  kubeone etcd snapshot -m kubeone.yaml --on-hosts",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if onHosts {
				return runSnapshotsOnHosts(cmd, stdio, f, args)
			}
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, e *engine.Engine, members *engine.Etcd) error {
				return runSnapshot(ctx, stdio, f, file, e, members)
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

func runSnapshot(ctx context.Context, stdio IO, f *etcdFlags, file string, e *engine.Engine, members *engine.Etcd) error {
	if members.Alone() {
		_, _ = fmt.Fprintf(stdio.Err, "warning: etcd has no quorum: the snapshot has what the member on %s last knew\n", members.Via())
	}
	path, info, err := members.Snapshot(ctx, file)
	if err != nil {
		return err
	}
	doc := SnapshotDocument{Format: EtcdFormat, Cluster: e.Want().Name, File: path, Via: members.Via(), Snapshot: info}
	return printEtcd(stdio, f.output, doc, doc.print)
}

// runSnapshotsOnHosts takes snapshots where they stay. It asks nothing: it only adds files of our own.
func runSnapshotsOnHosts(cmd *cobra.Command, stdio IO, f *etcdFlags, args []string) error {
	ctx := cmd.Context()
	e, err := f.open(ctx, stdio, args, host.PolicyStrict)
	if err != nil {
		return err
	}
	defer e.Close()
	look, err := e.LookSnapshots(ctx)
	if err != nil {
		return err
	}
	for _, note := range look.Plan.Notes {
		_, _ = fmt.Fprintf(stdio.Err, "warning: %s\n", note)
	}
	err = f.observe(ctx, stdio, e, look, e.NewRunID(), func(ctx context.Context, o engine.ApplyOptions) error {
		return e.TakeSnapshots(ctx, look, o)
	})
	if err == nil && f.output == "text" {
		_, _ = fmt.Fprintf(stdio.Out, "Done. %d hosts have a new snapshot in %s.\n", len(look.Plan.Steps), engine.SnapshotDir)
	}
	return err
}

func newEtcdDefragmentCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{applyFlags{clusterFlags: clusterFlags{lookOnly: true}}}
	cmd := &cobra.Command{
		Use: "defragment [MANIFEST]", Short: "Give the unused space of every member back, one after the other, the leader last",
		Long: "Give the unused space of every member's database back. A member answers nobody while it is its turn: about ten seconds\n" +
			"for each GiB. Followers come first, the leader last, and the next one only when all are healthy; otherwise it stops.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, e *engine.Engine, members *engine.Etcd) error {
				doc := DefragmentDocument{Format: EtcdFormat, Cluster: e.Want().Name, Members: []DefragmentedReport{}}
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
	f := &etcdFlags{applyFlags{clusterFlags: clusterFlags{lookOnly: true}}}
	cmd := &cobra.Command{
		Use: "disarm [MANIFEST]", Short: "Take alarms back, once their cause is gone",
		Long: "Take the alarms of all members back, so that etcd is written to again. It refuses as long as a database is as large as\n" +
			"it may be (defragment first), and for an alarm of corruption (replace that member).",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withEtcd(cmd, stdio, args, func(ctx context.Context, e *engine.Engine, members *engine.Etcd) error {
				done, err := members.Disarm(ctx, f.forceUnlock)
				if err != nil {
					return err
				}
				doc := disarmDocument(e.Want().Name, done)
				return printEtcd(stdio, f.output, doc, doc.print)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.forceUnlock, "force-unlock", false, "take the lock over from another run")
	outputFlag(cmd, &f.output, "text or json")
	return cmd
}
