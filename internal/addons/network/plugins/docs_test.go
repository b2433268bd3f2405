package plugins

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/addons/network"
	"kubeone/internal/testutil/golden"
)

const docsIntro = `# Network plugins

The manifest chooses the plugin with ~clusterNetwork.cni~ ([manifest.md](manifest.md)). kubeone deploys these plugins:

`

const docsText = `
The plugin is an [addon](addons.md) of its name: kubeone compares its objects with the cluster, and repairs them. The
container runtime of a host gets the CNI configuration only after the plugin works on the host ([ADR
17](adr/0017-network-plugins.md)). A reset removes what a plugin leaves on a host. kubeone does not replace the plugin
of an existing cluster.

With ~external~, you deploy a plugin yourself, and Nodes stay NotReady until you do. kubeone then opens no
[ports](ports.md) for the plugin, and [bundles](bundle.md) do not contain its images.

The tables are written from ~internal/addons/network~; ~go test ./internal/addons/network/plugins -update~ rewrites this
page.
`

// The documentation lists what each plugin of the table consists of.
func TestPluginsAreDocumented(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(docsIntro + "| plugin | namespace | ports | CNI configuration |\n|---|---|---|---|\n")
	for _, p := range deployed() {
		var namespaces, ports, files []string
		for _, w := range p.Workloads() {
			if !slices.Contains(namespaces, "~"+w.Namespace+"~") {
				namespaces = append(namespaces, "~"+w.Namespace+"~")
			}
		}
		for _, r := range p.Ports() {
			ports = append(ports, r.Ports+"/"+r.Protocol)
		}
		for _, f := range p.Config(cluster(p)).Files() {
			files = append(files, "~"+f+"~")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.Name(), joinCells(namespaces), joinCells(ports), joinCells(files))
	}
	b.WriteString("\nTheir artifacts are on every host, in one version for all versions of Kubernetes:\n\n" +
		"| plugin | artifact | version | official location |\n|---|---|---|---|\n")
	for _, p := range deployed() {
		for _, f := range p.Binaries() {
			fmt.Fprintf(&b, "| %s | %s | %s | ~https://github.com/%s/releases~ |\n", p.Name(), f.Name, f.Version, f.Project)
		}
		for _, i := range p.Images() {
			fmt.Fprintf(&b, "| %s | image | %s | ~%s/%s~ |\n", p.Name(), i.Tag, i.Registry, i.Repository)
		}
	}
	b.WriteString(docsText)
	golden.Check(t, "../../../../docs/network-plugins.md", strings.ReplaceAll(b.String(), "~", "`"))
}

// deployed returns the plugins that kubeone deploys.
func deployed() []network.Plugin {
	return slices.DeleteFunc(All(), func(p network.Plugin) bool { return len(p.Workloads()) == 0 })
}

func joinCells(words []string) string { return cmp.Or(strings.Join(words, ", "), "none") }
