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
		Short: "Save a verified snapshot of etcd",
		Long: "Save a snapshot of etcd to FILE, readable only by you, and verify its checksum, consistency,\n" +
			"revision and keys. If FILE is a directory or is omitted, a file name is generated. With -, the\n" +
			"snapshot is written to standard output and messages to standard error. The file is not encrypted and\n" +
			"contains the Secrets of the cluster. For an encrypted file with everything needed to restore the\n" +
			"cluster, use kubeone backup.\n\n" +
			"With --on-hosts, each control-plane host saves a snapshot of its own member in\n" +
			script.SnapshotDir + " and schedules further snapshots as set in the manifest\n" +
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
				return &usageError{fmt.Errorf("--output with --on-hosts is text or json, not %q", f.output),
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
	flags.BoolVar(&onHosts, "on-hosts", false, "save a snapshot on every control-plane host instead")
	flags.BoolVar(&f.forceUnlock, "force-unlock", false, "with --on-hosts: take over the lock of another run")
	outputFlag(cmd, &f.output)
	return cmd
}

// checkSnapshotFile refuses file names that are probably a mistake, such as a manifest.
func checkSnapshotFile(file string, onHosts bool) error {
	if onHosts {
		return fmt.Errorf("--on-hosts keeps the snapshots on the hosts; remove the argument %q", file)
	}
	switch filepath.Ext(file) {
	case ".yaml", ".yml", ".json":
		return fmt.Errorf("%q is not a file name for a snapshot; name the manifest with --manifest", file)
	}
	return nil
}

// runSnapshot saves a snapshot to a file, or writes it to standard output if file is "-".
func runSnapshot(ctx context.Context, stdio IO, f *etcdFlags, file string, w *workspace.Workspace,
	members *maintenance.Etcd) error {
	var out io.Writer
	if file == "-" {
		var err error
		if out, err = view.Binary(stdio.Out); err != nil {
			return &classError{view.ExitConfig, fmt.Errorf("a snapshot is binary data: %w", err)}
		}
		stdio.Out = stdio.Err // standard output carries the snapshot
	}
	if members.WithoutQuorum() {
		_, _ = fmt.Fprintf(stdio.Err,
			"warning: etcd has no quorum; the snapshot holds the last state of the member on %s\n",
			members.ConnectedHost())
	}
	doc := view.SnapshotDocument{Format: view.EtcdFormat, Cluster: w.Name(), File: file, Via: members.ConnectedHost()}
	var err error
	if out != nil {
		doc.Snapshot, err = members.WriteSnapshot(ctx, out)
	} else {
		doc.File, doc.Snapshot, err = w.SaveSnapshot(ctx, members, file)
	}
	if err != nil {
		return err
	}
	return printResult(stdio.Out, f.output, jsonEncoder(doc), doc.Print)
}

// runSnapshotsOnHosts saves snapshots on the hosts. It does not ask for confirmation, because it only adds files that
// belong to kubeone.
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
		findSkippedHosts(p, p.Want.ControlPlane, "no new snapshot"))
}
