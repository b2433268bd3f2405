package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kubeone/internal/cluster"
	"kubeone/internal/manifest"
	"kubeone/internal/manifest/compare"
	"kubeone/internal/view"
	"kubeone/internal/workspace"
)

// liveFlags select a running cluster.
type liveFlags struct{ kubeconfig, context string }

func (f *liveFlags) registerFlags(cmd *cobra.Command) {
	kubeconfigFlag(cmd, &f.kubeconfig)
	cmd.Flags().StringVar(&f.context, "context", "", "`CONTEXT` in the kubeconfig (default: its current context)")
}

// isSet reports whether a flag selects a cluster.
func (f *liveFlags) isSet() bool { return *f != liveFlags{} }

// loadRecord loads the manifest that was last applied to the cluster.
func (f *liveFlags) loadRecord(ctx context.Context) (manifest.Loaded, error) {
	access, err := workspace.OpenKubeconfigContext(f.kubeconfig, f.context)
	if err != nil {
		return manifest.Loaded{}, err
	}
	c, err := cluster.Connect(access)
	if err != nil {
		return manifest.Loaded{}, err
	}
	defer c.Close()
	record, err := c.Record(ctx)
	if err != nil {
		return manifest.Loaded{}, err
	}
	if record == nil || record.Manifest == "" {
		return manifest.Loaded{}, &classError{view.ExitConfig, errors.New("the cluster has no record of a manifest: " +
			"kubeone has not been applied to it")}
	}
	return manifest.Load(ctx, manifest.Options{
		ManifestPath: "the record of the cluster", ManifestReader: strings.NewReader(record.Manifest),
	})
}

// contextPrefix marks an argument of "kubeone diff" as a context in the kubeconfig.
const contextPrefix = "context:"

// newDiffCommand returns "kubeone diff".
func newDiffCommand(stdio IO) *cobra.Command {
	var kubeconfig, output string
	var all bool
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare the desired states of two clusters",
		Long: "Compare the desired states of two clusters, with their defaults. A and B are each a manifest, a file\n" +
			"of objects, or context:NAME for what was last applied to the cluster of that context in the\n" +
			"kubeconfig. What describes hosts or the provider is not compared without --all. The command does not\n" +
			"connect to any host.\n\n" +
			"Exit status: 0 if both are the same, 1 if they differ.",
		Example: "  kubeone diff staging.yaml production.yaml\n" +
			"  kubeone diff kubeone.yaml context:prod",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sides [2][]byte
			for i, arg := range args {
				loaded, err := loadSide(cmd.Context(), stdio, arg, kubeconfig)
				if err != nil {
					return err
				}
				sides[i] = loaded.ManifestText
			}
			found, err := compare.Manifests(sides[0], sides[1])
			if err != nil {
				return err
			}
			return printDifferences(stdio, found, args, output, all)
		},
	}
	kubeconfigFlag(cmd, &kubeconfig)
	cmd.Flags().BoolVar(&all, "all", false, "also compare hosts, addresses, the cluster's name and the provider")
	outputFlag(cmd, &output)
	return cmd
}

// loadSide loads one of the two clusters.
func loadSide(ctx context.Context, stdio IO, arg, kubeconfig string) (manifest.Loaded, error) {
	if name, ok := strings.CutPrefix(arg, contextPrefix); ok {
		live := liveFlags{kubeconfig: kubeconfig, context: name}
		return live.loadRecord(ctx)
	}
	o := manifest.Options{ManifestPath: arg, Stdin: stdio.In, ReadAddons: true}
	if arg != "-" { // read once, to say what a kubeconfig is
		text, err := os.ReadFile(arg)
		if err == nil && bytes.Contains(text, []byte("\nkind: Config\n")) {
			return manifest.Loaded{}, &classError{view.ExitConfig,
				fmt.Errorf("%s is a kubeconfig; use --kubeconfig %s and %sNAME", arg, arg, contextPrefix)}
		}
	}
	return manifest.Load(ctx, o)
}

// printDifferences prints the differences, and returns exit status 1 if there are any.
func printDifferences(stdio IO, found []compare.Difference, names []string, output string, all bool) error {
	shown, hidden := []compare.Difference{}, 0
	for _, d := range found {
		if d.Specific && !all {
			hidden++
			continue
		}
		shown = append(shown, d)
	}
	err := printResult(stdio.Out, output, jsonEncoder(struct {
		Format      int                  `json:"format"`
		A           string               `json:"a"`
		B           string               `json:"b"`
		Differences []compare.Difference `json:"differences"`
		Hidden      int                  `json:"hidden"`
	}{1, names[0], names[1], shown, hidden}), func(out io.Writer) error {
		view.Differences(out, shown, names, hidden)
		return nil
	})
	if err == nil && len(shown) > 0 {
		return &statusError{1}
	}
	return err
}
