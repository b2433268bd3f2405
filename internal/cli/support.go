package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kubeone/internal/cluster/record"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
	"kubeone/internal/workspace/support"
)

// newSupportCommand returns "kubeone support".
func newSupportCommand(stdio IO) *cobra.Command {
	f := &clusterFlags{}
	var file string
	cmd := &cobra.Command{
		Use:   "support [MANIFEST]",
		Short: "Collect logs and state for troubleshooting",
		Long: "Collect the data needed for troubleshooting in one archive: manifest, plan, status, history, host\n" +
			"logs, pods, events, and the run journals on this machine. Keys, tokens and passwords are removed.\n" +
			"Names and addresses are not, so check the archive before you share it. The archive lists unreachable\n" +
			"hosts. Nothing is changed.",
		Example: "  kubeone support\n" +
			"  kubeone support -f support.tar.gz",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := f.openCluster(cmd.Context(), stdio, args, host.PolicyProbe)
			if err != nil {
				return err
			}
			defer w.Close()
			return writeSupport(cmd.Context(), stdio, w, file)
		},
	}
	f.registerFlags(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "archive `FILE` to write (default NAME-support-TIME.tar.gz)")
	return cmd
}

// writeSupport writes the archive and prints its name and what is missing in it. It returns an error if no host
// responded.
func writeSupport(ctx context.Context, stdio IO, w *workspace.Workspace, file string) error {
	p, err := w.Engine.Propose(ctx, engine.Apply{NamesOnly: true})
	if err != nil {
		return err
	}
	now := time.Now()
	if file == "" {
		file = fmt.Sprintf("%s-support-%s.tar.gz", w.Name(), now.UTC().Format("20060102T150405Z"))
	}
	var missing []support.Missing
	err = createPrivate(file, func(out io.Writer) (err error) {
		missing, err = w.Support(ctx, out, p, func(runs []record.Run) ([]support.Document, error) {
			return clusterDocuments(w, p, runs, now)
		}, proxyCredentials(stdio.Getenv))
		return err
	})
	if err != nil {
		return &classError{view.ExitConfig, fmt.Errorf("write %s: %w", file, err)}
	}
	for _, m := range missing {
		_, _ = fmt.Fprintf(stdio.Err, "missing: %s: %s\n", m.What, firstLine(m.Why))
	}
	if _, err := fmt.Fprintln(stdio.Out, file); err != nil {
		return err
	}
	if left := findSkippedHosts(p, p.Want.Hosts(), ""); left != nil && len(left.names) == len(p.Want.Hosts()) {
		return &classError{left.status, fmt.Errorf("no host answered: %s contains only data from this machine", file)}
	}
	return nil
}

// clusterDocuments returns the output of plan, status, history and version, and the data it is based on.
func clusterDocuments(w *workspace.Workspace, p engine.Proposal, runs []record.Run,
	now time.Time) ([]support.Document, error) {
	var status, history bytes.Buffer
	in := newStatusInput(p, now)
	view.Status(&status, view.Style{}, in)
	view.History(&history, view.Style{}, runs)
	var errs []error
	document := func(name string) func([]byte, error) support.Document {
		return func(text []byte, err error) support.Document {
			errs = append(errs, err)
			return support.Document{Name: name, Text: text}
		}
	}
	var text bytes.Buffer
	view.Plan(&text, view.Style{}, p.Plan, view.Verbose)
	out := []support.Document{
		document("versions.json")(json.MarshalIndent(newVersionInfo(), "", "  ")),
		{Name: "manifest.yaml", Text: w.Manifest()},
		{Name: "plan.txt", Text: text.Bytes()}, document("plan.json")(view.PlanJSON(p.Plan, nil, p.Decisions...)),
		{Name: "status.txt", Text: status.Bytes()}, document("status.json")(view.StatusJSON(in)),
		document("world.json")(json.MarshalIndent(p.Observed.World, "", "  ")),
		{Name: "history.txt", Text: history.Bytes()}, document("history.json")(view.HistoryJSON(w.Name(), runs)),
		document("etcd.json")(json.MarshalIndent(p.Observed.World.Etcd, "", "  ")),
	}
	return out, errors.Join(errs...)
}

// proxyCredentials returns the passwords in the proxy settings of this process.
func proxyCredentials(getenv func(string) string) []string {
	var out []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"} {
		out = append(out, workspace.CredentialsOf(getenv(name))...)
		out = append(out, workspace.CredentialsOf(getenv(strings.ToLower(name)))...)
	}
	return out
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
