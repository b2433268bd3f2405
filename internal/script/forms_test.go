package script

import (
	"kubeone/internal/componentconfig"
	"strings"
	"testing"

	"kubeone/internal/model/desired"
)

// What is shown beforehand as a host's files is what its stages write.
func TestFilesOfSettingsAreThoseThatAreWritten(t *testing.T) {
	t.Parallel()
	b, in := configured(t, "kubelet"), input("w-1")
	compared := 0
	for _, name := range []string{"containerd", "kubelet"} {
		for _, f := range componentconfig.SettingsFiles(in.Input, name) {
			is := b.must("! [ -f '" + b.path(f.Path[1:]) + "' ] || cat '" + b.path(f.Path[1:]) + "'")
			is = strings.ReplaceAll(is, b.root, "")
			var want []string
			for line := range strings.Lines(strings.TrimRight(f.Content, "\n") + "\n") {
				if strings.HasPrefix(line, componentconfig.SandboxLine) {
					for written := range strings.Lines(is) {
						if strings.HasPrefix(written, componentconfig.SandboxLine) {
							line = written
						}
					}
				}
				want = append(want, line)
			}
			if got := strings.TrimRight(is, "\n"); got != strings.TrimRight(strings.Join(want, ""), "\n") {
				t.Errorf("%s is\n%s\nand is shown as\n%s", f.Path, is, f.Content)
			}
			compared++
		}
	}
	if compared < 6 || len(componentconfig.SettingsFiles(in.Input, "kernel")) != 2 ||
		componentconfig.SettingsFiles(in.Input, desired.ComponentsDigest) != nil {
		t.Errorf("%d files", compared)
	}
}
