package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"kubeone/internal/machines/manager"
	"kubeone/internal/machines/provider/ssh"
	"kubeone/internal/workspace"
)

// newControllerCommand returns "kubeone controller".
func newControllerCommand(stdio IO) *cobra.Command {
	var artifacts artifactFlags
	var kubeconfig, metrics, health, bundleDir string
	var runClusters bool
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the controllers for Machines and Hosts",
		Long: "Run the controllers that turn hosts in the pool into Nodes, as requested by Machine, MachineSet and\n" +
			"MachineDeployment objects. When it starts, the command creates the CustomResourceDefinitions for\n" +
			"these kinds. It runs until it is interrupted and logs JSON lines to standard error. If several\n" +
			"instances run, only one is active; another one takes over when it stops. In a pod without a\n" +
			"kubeconfig, the command uses the service account of the pod.",
		Example: "  kubeone controller --kubeconfig prod-kubeconfig --bundle kubeone-1.36.3-amd64.tar",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			access, err := workspace.OpenKubeconfigOrPod(kubeconfig, workspace.ServiceAccountDir)
			if err != nil {
				return err
			}
			files := workspace.Options{
				Bundles: artifacts.bundles, BundleDir: bundleDir, BundleSHA256: artifacts.sums,
				Digests:     artifacts.digests,
				TrustSource: artifacts.trust, InsecureMirror: artifacts.insecure,
			}
			releases := workspace.NewReleaseOpener(files)
			defer releases.Close()
			// Read the bundles now to report a damaged one at the start, not with the first Machine.
			if _, err := releases.From(cmd.Context(), ""); err != nil {
				return err
			}
			ctx, stop := newSignalContext(cmd.Context(), stdio)
			defer stop()
			logger := slog.New(slog.NewJSONHandler(stdio.Err, nil))
			klog.SetSlogLogger(logger) // client-go logs through klog
			log.SetLogger(logr.FromSlogHandler(logger.Handler()))
			options := manager.Options{
				Site:    ssh.Site{Access: access, Releases: releases.From, Holder: "controller/" + workspace.Holder()},
				Metrics: metrics, Health: health,
				Log: logger,
			}
			if runClusters {
				options.Clusters = clusterOpener(files)
			}
			return manager.Run(ctx, options)
		},
	}
	kubeconfigFlag(cmd, &kubeconfig)
	artifacts.registerFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&bundleDir, "bundle-dir", "",
		"`DIR` with bundles (*.tar); bundles can be added while the controllers run")
	flags.BoolVar(&runClusters, "clusters", false,
		"also carry out the Cluster, by SSH to its hosts as kubeone apply does")
	flags.StringVar(&metrics, "metrics-bind-address", "0",
		"`ADDRESS` on which to serve Prometheus metrics; 0 disables them")
	flags.StringVar(&health, "health-probe-bind-address", "0",
		"`ADDRESS` on which to serve /healthz and /readyz; 0 disables them")
	return cmd
}

// kubeconfigFlag adds --kubeconfig.
func kubeconfigFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "kubeconfig", "",
		"kubeconfig `FILE` of the cluster (default $KUBECONFIG, otherwise ~/.kube/config)")
}

// newSignalContext returns a context that is canceled on the first Ctrl-C or SIGTERM, and a function that releases it.
func newSignalContext(ctx context.Context, stdio IO) (context.Context, func()) {
	if stdio.Interrupts == nil {
		return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-stdio.Interrupts:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
