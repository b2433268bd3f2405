package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"kubeone/internal/engine"
	"kubeone/internal/engine/maintenance"
	"kubeone/internal/host"
	"kubeone/internal/script"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

func newEtcdSnapshotCommand(stdio IO) *cobra.Command {
	f := &etcdFlags{}
	var onHosts bool
	cmd := &cobra.Command{
		Use:   "snapshot [FILE|-]",
		Short: "Save a verified snapshot of etcd here, or on the control-plane hosts",
		Long: "Save a snapshot of etcd in a file that only you read, checked to its last byte: checksum,\n" +
			"consistency, revision and keys. In a folder, which is the working directory without an argument, it\n" +
			"gets a name of its own; - is standard output, and what is said about it goes to standard error.\n" +
			"It holds every Secret of the cluster unencrypted; kubeone backup writes an encrypted one, with all\n" +
			"else that a cluster cannot be brought back without.\n\n" +
			"With --on-hosts each control-plane host takes one of its own member and keeps it in\n" +
			script.SnapshotDir + ", and its timer for the scheduled ones becomes that of the manifest\n" +
			"(backup.schedule, backup.keep).",
		Example: "  kubeone etcd snapshot -m kubeone.yaml before-the-change.db\n" +
			"  kubeone etcd snapshot -m kubeone.yaml - | age -r age1... > etcd.age\n" +
			"  kubeone etcd snapshot -m kubeone.yaml --on-hosts",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := cmp.Or(firstArgument(args), ".")
			if err := checkSnapshotFile(file, onHosts && len(args) > 0); err != nil {
				return &usageError{err, cmd.CommandPath()}
			}
			if onHosts && f.output != formatText && f.output != formatJSON {
				return &usageError{fmt.Errorf("with --on-hosts, --output is text or json, not %q", f.output),
					cmd.CommandPath()}
			}
			if onHosts {
				return runSnapshotsOnHosts(cmd, stdio, f)
			}
			return f.withEtcd(cmd, stdio, nil, func(ctx context.Context, w *workspace.Workspace,
				members *maintenance.Etcd) error {
				return runSnapshot(ctx, stdio, f, file, w, members)
			})
		},
	}
	f.registerFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&onHosts, "on-hosts", false, "take one on every control-plane host, and keep it there")
	flags.BoolVar(&f.forceUnlock, "force-unlock", false, "with --on-hosts: take over the lock of another run")
	outputFlag(cmd, &f.output)
	return cmd
}

// checkSnapshotFile refuses a file that nobody wants a snapshot in.
func checkSnapshotFile(file string, onHosts bool) error {
	if onHosts {
		return fmt.Errorf("with --on-hosts the snapshots stay on the hosts: leave %q out", file)
	}
	switch filepath.Ext(file) {
	case ".yaml", ".yml", ".json":
		return fmt.Errorf("the argument is the file to write the snapshot to, which %q would not be: name the "+
			"manifest with --manifest", file)
	}
	return nil
}

func runSnapshot(ctx context.Context, stdio IO, f *etcdFlags, file string, w *workspace.Workspace,
	members *maintenance.Etcd) error {
	var out io.Writer
	if file == "-" {
		var err error
		if out, err = view.Binary(stdio.Out); err != nil {
			return &classError{view.ExitConfig, fmt.Errorf("a snapshot is no text: %w", err)}
		}
		stdio.Out = stdio.Err // the result is the snapshot
	}
	if members.Alone() {
		_, _ = fmt.Fprintf(stdio.Err, "warning: etcd has no quorum: the snapshot has what the member on %s last knew\n",
			members.Via())
	}
	doc := view.SnapshotDocument{Format: view.EtcdFormat, Cluster: w.Name(), File: file, Via: members.Via()}
	var err error
	if out != nil {
		doc.Snapshot, err = members.WriteSnapshot(ctx, out)
	} else {
		doc.File, doc.Snapshot, err = w.SaveSnapshot(ctx, members, file)
	}
	if err != nil {
		return err
	}
	return printResult(stdio.Out, f.output, documentOf(doc), doc.Print)
}

// runSnapshotsOnHosts takes snapshots where they stay. It asks nothing: it only adds files of our own.
func runSnapshotsOnHosts(cmd *cobra.Command, stdio IO, f *etcdFlags) error {
	ctx := cmd.Context()
	w, err := f.openCluster(ctx, stdio, nil, host.PolicyStrict)
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
	if _, err := f.carryOut(ctx, stdio, w, p); err != nil {
		return err
	}
	return f.reportEnd(stdio,
		fmt.Sprintf("Done. %d hosts have a new snapshot in %s.", len(p.Plan.Steps), script.SnapshotDir),
		leftOutOf(p, p.Want.ControlPlane, "no new snapshot"))
}
