package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"kubeone/internal/manifest"
)

// BenchmarkLoad loads a manifest of a thousand hosts.
func BenchmarkLoad(b *testing.B) {
	var text strings.Builder
	text.WriteString(strings.Replace(demo, "{cni: {flannel: {}}}",
		"{cni: {flannel: {}}, podSubnet: 10.128.0.0/10, serviceSubnet: 172.16.0.0/16}",
		1) + "staticWorkers:\n  hosts:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "    - publicAddress: 10.0.%d.%d\n      hostname: worker-%d\n      sshUsername: admin\n"+
			"      labels: {rack: a%d}\n      taints: []\n", i/250, i%250+1, i, i%7)
	}
	for b.Loop() {
		if _, err := manifest.Load(b.Context(),
			manifest.Options{ManifestReader: strings.NewReader(text.String())}); err != nil {
			b.Fatal(err)
		}
	}
}
