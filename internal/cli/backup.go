package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kubeone/internal/etcd/backup"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/host"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// newBackupCommand returns "kubeone backup".
func newBackupCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var o workspace.BackupOptions
	var output string
	cmd := &cobra.Command{
		Use:   "backup [MANIFEST]",
		Short: "Back up the cluster to one encrypted file",
		Long: "Write one encrypted file that contains everything needed to restore the cluster: a verified etcd\n" +
			"snapshot, the CAs, the service-account keys, the encryption-at-rest configuration, and the manifest.\n" +
			"The file is encrypted with age for the recipients in the manifest (backup.recipients) or those\n" +
			"given with --recipient. Unencrypted data is never written to disk. No host is changed.\n\n" +
			"The backup is written to --file, to --to, or to backup.target in the manifest; without any of them,\n" +
			"to the current directory. To restore the cluster from a backup, use kubeone recover.",
		Example: "  kubeone backup -m kubeone.yaml\n" +
			"  kubeone backup -m kubeone.yaml -f prod.tar.age --recipient age1…\n" +
			"  kubeone backup -m kubeone.yaml --to ssh://backup@nas.example.com/srv/kubeone --keep 30",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("keep") && o.Keep < 1 {
				return &usageError{fmt.Errorf("--keep %d: at least 1 backup must be kept", o.Keep), cmd.CommandPath()}
			}
			o.Prune = cmd.Flags().Changed("keep")
			return runBackup(cmd, stdio, f, o, output, args)
		},
	}
	f.registerFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&o.File, "file", "f", "",
		"`FILE` to write, or a directory for a file with a generated name")
	flags.StringVar(&o.Target, "to", "",
		"`TARGET` to use instead of backup.target: a directory, ssh://USER@HOST/DIR or s3://BUCKET/PREFIX")
	flags.StringSliceVar(&o.Recipients, "recipient", nil,
		"age public `KEY` to encrypt for, instead of backup.recipients; can be repeated")
	flags.IntVar(&o.Keep, "keep", 0,
		"`NUMBER` of this cluster's backups to keep in the target; older ones are deleted (default all)")
	outputFlag(cmd, &output)
	cmd.AddCommand(newBackupReadCommand(stdio, true), newBackupReadCommand(stdio, false))
	return cmd
}

func runBackup(cmd *cobra.Command, stdio IO, f *clusterFlags, o workspace.BackupOptions, output string,
	args []string) error {
	w, err := f.openCluster(cmd.Context(), stdio, args, host.PolicyStrict)
	if err != nil {
		return err
	}
	defer w.Close()
	written, err := w.Backup(cmd.Context(), o)
	if err != nil {
		return err
	}
	doc := BackupDocument{
		Format: BackupFormat, Cluster: w.Name(), Name: written.Name, Places: written.Places, Size: written.Size,
		SHA256:  written.SHA256,
		Removed: written.Removed, Metadata: written.Metadata,
	}
	return printResult(stdio.Out, output, jsonEncoder(doc), doc.writeText)
}

// newBackupReadCommand returns "kubeone backup verify" or "kubeone backup inspect".
func newBackupReadCommand(stdio IO, verify bool) *cobra.Command {
	var identity, output string
	cmd := &cobra.Command{
		Use: "inspect FILE --identity KEYFILE", Short: "Show the contents of a backup",
		Long: "Decrypt the first part of a backup and show its metadata. Nothing is written to disk. To check the\n" +
			"whole file, use kubeone backup verify.",
		Example: "  kubeone backup inspect prod.tar.age --identity key.txt",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if identity == "" {
				return &usageError{
					errors.New("--identity is required: a file with a private key that can decrypt the backup"),
					cmd.CommandPath(),
				}
			}
			return backupError(runBackupRead(cmd, stdio, args[0], identity, output, verify))
		},
	}
	if verify {
		cmd.Use, cmd.Short = "verify FILE --identity KEYFILE", "Check that a backup is complete and unchanged"
		cmd.Example = "  kubeone backup verify prod.tar.age --identity key.txt"
		cmd.Long = "Decrypt a backup, check the digest of every part, and read the whole etcd snapshot to check its\n" +
			"checksum, consistency, revision and keys. Nothing is written to disk. The command needs enough\n" +
			"memory to hold the snapshot.\n\n" +
			"Exit status: 0 if the backup is valid, 15 if it is not."
	}
	cmd.Flags().StringVar(&identity, "identity", "",
		"`KEYFILE` with an age private key that can decrypt the backup")
	outputFlag(cmd, &output)
	return cmd
}

func runBackupRead(cmd *cobra.Command, stdio IO, path, identity, output string, verify bool) error {
	identities, err := backup.ReadIdentities(identity)
	if err != nil {
		return &classError{view.ExitConfig, err}
	}
	a, err := backup.Open(path, identities...)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }() // the file was only read
	if verify {
		if err := a.Verify(cmd.Context()); err != nil {
			return err
		}
	}
	// An unknown CA is no error here: only recover connects to the cluster and can compare the CA.
	err = a.VerifySignature()
	if err != nil && !errors.Is(err, backup.ErrUnknownCA) {
		return err
	}
	doc := BackupReadDocument{
		Format: BackupFormat, File: path, Verified: verify,
		Metadata: a.Metadata,
	}
	return printResult(stdio.Out, output, jsonEncoder(doc), doc.writeText)
}

// backupError gives an unusable backup the exit status of a configuration error.
func backupError(err error) error {
	for _, unusable := range []error{
		backup.ErrWrongIdentity, backup.ErrNotBackup, backup.ErrTruncated, backup.ErrAltered, backup.ErrNewer,
		backup.ErrIncomplete, backup.ErrForged, backup.ErrCAMismatch, backup.ErrTimeMismatch, fs.ErrNotExist,
		snapshot.ErrEmpty, snapshot.ErrTruncated, snapshot.ErrAltered, snapshot.ErrNotSnapshot, snapshot.ErrNoChecksum,
		snapshot.ErrInconsistent,
	} {
		if errors.Is(err, unusable) {
			return &classError{view.ExitConfig, err}
		}
	}
	return err
}

// BackupFormat is the version of the JSON that "backup" and its subcommands print. The version of the backup file
// itself is backup.Format.
const BackupFormat = 1

// BackupDocument is the JSON that "backup -o json" prints.
type BackupDocument struct {
	Format   int             `json:"format"` // BackupFormat
	Cluster  string          `json:"cluster"`
	Name     string          `json:"name"`
	Places   []string        `json:"places"` // the file or the target, or both
	Size     int64           `json:"size"`   // bytes, of the encrypted file
	SHA256   string          `json:"sha256"` // hex, of the encrypted file
	Removed  []string        `json:"removed,omitempty"`
	Metadata backup.Metadata `json:"metadata"`
}

func (d BackupDocument) writeText(w io.Writer) error {
	for _, place := range d.Places {
		at := place
		if !strings.HasSuffix(place, d.Name) {
			at += ", " + d.Name
		}
		_, _ = fmt.Fprintf(w, "%s (%s)\n", at, view.Megabytes(d.Size))
	}
	for _, name := range d.Removed {
		_, _ = fmt.Fprintf(w, "removed %s\n", name)
	}
	_, err := fmt.Fprintf(w, "%s\nsha256 %s\n", metadataLine(d.Metadata), d.SHA256)
	return err
}

// BackupReadDocument is the JSON that "backup verify" and "backup inspect" print.
type BackupReadDocument struct {
	Format   int             `json:"format"` // BackupFormat
	File     string          `json:"file"`
	Verified bool            `json:"verified"` // every part in the backup matches its digest
	Metadata backup.Metadata `json:"metadata"`
}

func (d BackupReadDocument) writeText(w io.Writer) error {
	m := d.Metadata
	_, _ = fmt.Fprintf(w, "%s: cluster %s, taken %s by %s\n%s\nCA %s\n", d.File, m.Cluster,
		m.Created.Format(time.RFC3339), m.CreatedBy, metadataLine(m), m.CAHash)
	for _, p := range m.Parts {
		_, _ = fmt.Fprintf(w, "  %-28s %10d bytes\n", p.Name, p.Size)
	}
	_, _ = fmt.Fprintln(w, "Signed by this CA. recover accepts the backup if this is the CA of the cluster.")
	if d.Verified {
		_, _ = fmt.Fprintf(w, "Verified: all %d parts match their digests, and the snapshot is complete.\n",
			len(m.Parts))
	}
	return nil
}

// metadataLine summarizes the etcd snapshot in a backup.
func metadataLine(m backup.Metadata) string {
	return fmt.Sprintf("Kubernetes %s, etcd %s: revision %d, %d keys", m.KubernetesVersion, cmp.Or(m.EtcdVersion, "-"),
		m.Snapshot.Revision, m.Snapshot.Keys)
}
