package script

import (
	"kubeone/internal/componentconfig"
	"kubeone/internal/testutil/configtest"
	"os"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/model/desired"
)

// extended is a control-plane host of a cluster with extras.
func extended(t *testing.T) (*box, []desired.ComponentFile) {
	t.Helper()
	in := input("cp-1")
	in.Want.Extras = configtest.Extras()
	b := newBox(t, in)
	b.mkdir("run/kubeone/secrets")
	return b, componentconfig.ComponentFiles(in.Input)
}

func TestExtrasOfTheControlPlaneStayThere(t *testing.T) {
	t.Parallel()
	in := input("cp-1")
	in.Want.Extras = configtest.Extras()
	worker := input("w-1")
	worker.Want.Extras = configtest.Extras()
	if text := rendered(t, worker); strings.Contains(text, "kind: Policy") || strings.Contains(text, "/var/log/audit") {
		t.Error("a worker gets what only the control plane reads")
	}
	if strings.Contains(rendered(t, in), "geheim") {
		t.Error("the script has a secret in it")
	}
}

func TestComponentFilesArePutWhereOnlyRootReadsThem(t *testing.T) {
	t.Parallel()
	b, files := extended(t)
	b.fails("component_files", "plugin-")
	secret := files[slices.IndexFunc(files, func(f desired.ComponentFile) bool { return f.Secret })]
	b.write("run/kubeone/secrets/"+secret.Base(), "token: another\n")
	b.fails("component_files", "its sha256 is not "+secret.Digest)
	b.write("run/kubeone/secrets/"+secret.Base(), "token: geheim\n")
	b.must("umask 022; component_files")
	for _, f := range files {
		info, err := os.Stat(b.path(f.Path))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f.Path, info, err)
		}
	}
	if info, err := os.Stat(b.path("var/log/audit")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v %v", info, err)
	}
	// What is there needs no secret any more, and is not written again.
	b.must("rm -rf '" + b.path("run/kubeone/secrets") + "'")
	before := b.tree("etc/kubernetes/kubeone")
	b.must("component_files")
	for path, was := range b.tree("etc/kubernetes/kubeone") {
		if before[path] != was {
			t.Errorf("%s was written again", path)
		}
	}
}

// A file that no component reads any more is removed, and is not recorded.
func TestLeftoversOfComponentsGo(t *testing.T) {
	t.Parallel()
	b, files := extended(t)
	secret := files[slices.IndexFunc(files, func(f desired.ComponentFile) bool { return f.Secret })]
	b.write("run/kubeone/secrets/"+secret.Base(), "token: geheim\n")
	const old = "etc/kubernetes/kubeone/kube-apiserver/policy-0000000000000000.yaml"
	b.write(old, "old\n")
	b.must("record components=d0; component_files; component_leftovers; record components=d1")
	if b.read(old) != "" || strings.Contains(b.read("etc/kubeone/files"), "policy-0000") {
		t.Error("what nobody reads is still there")
	}
	for _, f := range files {
		if b.read(f.Path) == "" || !strings.Contains(b.read("etc/kubeone/files"), f.Path) {
			t.Errorf("%s is not there, or an edit of it would not be seen", f.Path)
		}
	}
	b.must("COMPONENT_FILES=; component_leftovers")
	if got := b.tree("etc/kubernetes"); len(got) != 0 {
		t.Errorf("still there: %v", got)
	}
}

// What runs on every host is exempt from default node selectors before they are in force, and what kubeadm installs
// follows only then.
func TestWhatRunsEverywhereIsExemptFromNodeSelectors(t *testing.T) {
	t.Parallel()
	in := input("cp-1")
	in.Want.Extras = []desired.Extra{{
		Component: desired.APIServer, Plugins: []desired.AdmissionPlugin{{Name: desired.NodeSelectorPlugin}},
	}}
	b := newBox(t, in)
	if out := b.must(`printf '%s' "$INIT_FLAGS"`); out != "--skip-phases=addon" {
		t.Errorf("kubeadm init %s", out)
	}
	const administer = `administer() { printf '%s\n' "$*" >>"@ROOT@/calls"
		case $* in
		"get namespace kubeone-system"*) return 1 ;;
		"annotate namespace kube-flannel"*) echo "error: --overwrite is false but found already set" >&2; return 1 ;;
		"annotate"*) [ ! -e "@ROOT@/down" ] ;;
		esac
	}; exempt_namespaces`
	b.must(administer)
	const annotation = " scheduler.alpha.kubernetes.io/node-selector="
	calls := b.calls()
	for _, namespace := range []string{"kube-system", "kube-flannel"} {
		if !slices.Contains(calls, "annotate namespace "+namespace+annotation) {
			t.Errorf("%s is not exempt:\n%s", namespace, strings.Join(calls, "\n"))
		}
	}
	if slices.Contains(calls, "annotate namespace kubeone-system"+annotation) {
		t.Error("a namespace that is not there was changed")
	}
	b.write("down", "")
	b.fails(administer, "cannot exempt namespace kube-system")
}
