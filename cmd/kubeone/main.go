// Command kubeone takes bare Linux hosts to a production Kubernetes cluster and keeps it right for its whole life.
package main

import (
	"context"
	"log/slog"
	"os"

	"kubeone/internal/cli"

	"k8s.io/klog/v2"
)

func main() {
	// The libraries of Kubernetes log what they also return, in lines of their own between ours.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.OS()))
}
