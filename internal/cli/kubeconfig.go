package cli

import (
	"errors"
	"fmt"
	"io"
	"kubeone/internal/view"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kubeone/internal/host"
)

// newKubeconfigCommand returns "kubeone kubeconfig".
func newKubeconfigCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var file string
	cmd := &cobra.Command{
		Use:   "kubeconfig [MANIFEST]",
		Short: "Print the administrator kubeconfig of the cluster",
		Long: "Print a kubeconfig with full access to the cluster. With --file, write it to a file that only you\n" +
			"can read.",
		Example: "  kubeone kubeconfig -m kubeone.yaml -f prod-kubeconfig\n" +
			"  umask 077; kubeone kubeconfig -m kubeone.yaml > prod-kubeconfig",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := f.openCluster(cmd.Context(), stdio, args, host.PolicyStrict)
			if err != nil {
				return err
			}
			defer w.Close()
			seen, err := w.Engine.Observe(cmd.Context())
			if err != nil {
				return err
			}
			if seen.Access == nil {
				return &classError{view.ExitKube,
					errors.New("no reachable control-plane host has a kubeconfig; see kubeone status")}
			}
			text, err := seen.Access.AdminKubeconfig(w.Name())
			if err != nil {
				return &classError{view.ExitKube,
					fmt.Errorf("the kubeconfig of the control-plane hosts was not written: %w", err)}
			}
			if file == "-" {
				_, err := stdio.Out.Write(text)
				return err
			}
			if err := writePrivate(file, text); err != nil {
				return &classError{view.ExitConfig, err}
			}
			_, err = fmt.Fprintln(stdio.Out, file)
			return err
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "-", "`FILE` to write, readable only by you; - for standard output")
	return cmd
}

// writePrivate writes a file with mode 0600 and replaces an existing one.
func writePrivate(path string, text []byte) error {
	return createPrivate(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// createPrivate creates a file with mode 0600 and replaces an existing one. On an error, the existing file stays
// unchanged.
func createPrivate(path string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".kubeone-*") // created with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // fails after the rename, when there is no such file
	if err := write(tmp); err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
