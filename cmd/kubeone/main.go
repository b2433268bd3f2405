// Command kubeone takes bare Linux hosts to a production Kubernetes cluster and keeps it right for its whole life.
package main

import (
	"context"
	"os"

	"kubeone/internal/cli"
)

func main() { os.Exit(cli.Main(context.Background(), os.Args[1:], cli.OS())) }
