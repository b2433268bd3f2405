package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"kubeone/internal/release"
)

// Version is the version of kubeone, set by the build.
var Version = "v0.1.0" //nolint:gochecknoglobals // set by -ldflags -X

// newVersionCommand returns "kubeone version".
func newVersionCommand(stdio IO) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the kubeone and supported Kubernetes versions",
		Example: "  kubeone version\n" +
			"  kubeone version -o 'jsonpath={.version}'",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info := newVersionInfo()
			return printResult(stdio.Out, output, jsonEncoder(info), func(out io.Writer) error {
				_, err := io.WriteString(out, info.String()+"\n")
				return err
			})
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

// versionInfo is the JSON that "version" prints.
type versionInfo struct {
	Version    string   `json:"version"`
	Go         string   `json:"go"`
	Platform   string   `json:"platform"`
	Kubernetes []string `json:"kubernetes"`
}

// String returns the versions on one line.
func (v versionInfo) String() string {
	return fmt.Sprintf("kubeone %s (%s, %s), for Kubernetes %v", v.Version, v.Go, v.Platform, v.Kubernetes)
}

func newVersionInfo() versionInfo {
	return versionInfo{Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, release.Supported()}
}
