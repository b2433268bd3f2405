// Command kubeone installs and maintains production Kubernetes clusters on Linux hosts.
package main

import (
	"context"
	"log/slog"
	"os"

	"kubeone/internal/cli"

	"k8s.io/klog/v2"
)

func main() {
	// Kubernetes libraries log errors that they also return; the logs would mix with the output.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.OS()))
}
