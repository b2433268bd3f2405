package script

import (
	"os"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/desired"
)

// extras are of two things: a file with a flag and a directory, and an admission plugin with a secret configuration.
func extras() []desired.Extra {
	policy := desired.NewComponentFile(desired.APIServer, "policy.yaml", "kind: Policy\n\n\n")
	plugin, _ := desired.NewComponentFile(desired.APIServer, "plugin.yaml", "token: geheim").Secretly()
	return []desired.Extra{
		{
			Name: "audit", Component: desired.APIServer, Files: []desired.ComponentFile{policy},
			Flags: map[string]string{"audit-policy-file": policy.Path}, Directories: []string{"/var/log/audit"},
		},
		{
			Name: "plugin", Component: desired.APIServer,
			Plugins: []desired.AdmissionPlugin{{Name: "Zed", Config: &plugin}, {Name: "Always"}},
		},
		{Name: "scheduler", Component: desired.Scheduler, Flags: map[string]string{"v": "4"}},
	}
}

// extended is a control-plane host of a cluster with extras.
func extended(t *testing.T) (*box, []desired.ComponentFile) {
	t.Helper()
	in := input("cp-1")
	in.Want.Extras = extras()
	b := newBox(t, in)
	b.mkdir("run/kubeone/secrets")
	return b, componentFiles(in)
}

func TestComponentsAreToldOfTheirExtras(t *testing.T) {
	t.Parallel()
	in := input("cp-1")
	in.Want.Extras = extras()
	text, err := documents(clusterConfiguration(in.Want))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"value: NodeRestriction,Always,Zed\n",
		"- name: admission-control-config-file\n    value: /etc/kubernetes/kubeone/kube-apiserver/admission-",
		"- name: audit-policy-file\n    value: /etc/kubernetes/kubeone/kube-apiserver/policy-",
		"hostPath: /etc/kubernetes/kubeone/kube-apiserver\n    mountPath: /etc/kubernetes/kubeone/kube-apiserver\n" +
			"    name: kubeone\n    pathType: Directory\n    readOnly: true\n",
		"hostPath: /var/log/audit\n    mountPath: /var/log/audit\n    name: kubeone-0\n" +
			"    pathType: DirectoryOrCreate\n",
		"scheduler:\n  extraArgs:\n  - name: profiling\n    value: \"false\"\n  - name: v\n    value: \"4\"\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("lacks %q:\n%s", part, text)
		}
	}
	worker := input("w-1")
	worker.Want.Extras = extras()
	if text := rendered(t, worker); strings.Contains(text, "kind: Policy") || strings.Contains(text, "/var/log/audit") {
		t.Error("a worker gets what only the control plane reads")
	}
	if strings.Contains(rendered(t, in), "geheim") {
		t.Error("the script has a secret in it")
	}
}

// Another content is another digest of the control plane's components, and of nothing else.
func TestExtrasAreInTheDigestOfComponents(t *testing.T) {
	t.Parallel()
	before, after := input("cp-1"), input("cp-1")
	before.Want.Extras, after.Want.Extras = extras(), extras()
	after.Want.Extras[0].Files[0] = desired.NewComponentFile(desired.APIServer, "policy.yaml", "kind: Other")
	after.Want.Extras[0].Flags = map[string]string{"audit-policy-file": after.Want.Extras[0].Files[0].Path}
	was, is := digestsOf(before), digestsOf(after)
	for name := range was {
		pods := name == desired.ComponentsDigest
		if (was[name] != is[name]) != pods {
			t.Errorf("%s: differs %t", name, was[name] != is[name])
		}
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

// A file that nobody reads any more goes, and is not missed.
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
