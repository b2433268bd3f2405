package cli

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"kubeone/internal/release"
)

// Version is this program's version; the build sets it.
var Version = "v0.1.0-dev" //nolint:gochecknoglobals // set by -ldflags -X

// newVersionCommand returns "kubeone version".
func newVersionCommand(stdio IO) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of the Kubernetes that it installs",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info := versions()
			if output == "json" {
				return json.NewEncoder(stdio.Out).Encode(info)
			}
			_, err := fmt.Fprintf(stdio.Out, "kubeone %s (%s, %s), for Kubernetes %v\n", info.Version, info.Go,
				info.Platform, info.Kubernetes)
			return err
		},
	}
	outputFlag(cmd, &output, "text or json")
	return cmd
}

// versionInfo is what there is to know about this program.
type versionInfo struct {
	Version    string   `json:"version"`
	Go         string   `json:"go"`
	Platform   string   `json:"platform"`
	Kubernetes []string `json:"kubernetes"`
}

func versions() versionInfo {
	return versionInfo{Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, release.Supported()}
}
