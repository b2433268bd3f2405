package fields

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"sigs.k8s.io/yaml"

	"kubeone/internal/addons"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/componentconfig"
	"kubeone/internal/decide"
	"kubeone/internal/host"
	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/script"
	"kubeone/internal/testutil/decidetest"
	"kubeone/internal/testutil/plugintest"
	"kubeone/internal/workspace"
)

// effects are the results of a manifest: lines by place. A refused manifest has a single place.
type effects map[string][]string

const refused = "refused"

// effectsOf loads a manifest of a folder and renders everything that follows from it.
func effectsOf(t *testing.T, dir string, m tree) effects {
	t.Helper()
	text, err := yaml.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := manifest.Load(t.Context(), manifest.Options{
		ManifestReader: bytes.NewReader(text), ManifestPath: filepath.Join(dir, "kubeone.yaml"), Home: dir,
	})
	if err != nil {
		return effects{refused: strings.Split(strings.ReplaceAll(err.Error(), dir, "DIR"), "\n")}
	}
	want := loaded.Cluster
	want.Digest = "" // differs after every change
	want.Artifacts = map[string]desired.Artifacts{}
	for _, h := range want.Hosts() {
		want.Artifacts[desired.ArtifactsKey("amd64", h.Versions)] = artifactsOf(t, want, h)
	}
	out := effects{}
	out.addScripts(t, want)
	out.addObjects(t, want, loaded.MachineDeployments)
	out.addPlans(t, want)
	out.addTargets(t, want, dir)
	return out
}

// artifactsOf returns the artifacts of a host: the names of a release, with meaningless digests.
func artifactsOf(t *testing.T, want desired.Cluster, h desired.Host) desired.Artifacts {
	t.Helper()
	out := desired.Artifacts{
		KubernetesVersion: want.KubernetesVersion, Arch: "amd64",
		Binaries: []desired.Binary{{
			Name: desired.BinaryKubelet, Version: want.KubeletVersion(h), URL: "https://example.com/kubelet",
			SHA256: "aa",
		}},
		Images: []desired.Image{
			{Name: "registry.k8s.io/etcd:3.6.8-0", Source: "registry.k8s.io/etcd:3.6.8-0", Digest: "sha256:bb"},
			{Name: "registry.k8s.io/coredns/coredns:v1", Source: "registry.k8s.io/coredns/coredns:v1", Digest: "sha256:dd"},
		},
	}
	for _, p := range plugins.All() {
		out.Published = append(out.Published, plugintest.Published(t, "../..", p.Name())...)
		for _, i := range p.Images() {
			name := i.Registry + "/" + i.Repository + ":v1"
			out.Images = append(out.Images, desired.Image{Name: name, Source: name, Digest: "sha256:cc"})
		}
	}
	return out
}

// addScripts adds the scripts of the first control-plane host and of the first worker, without the parts that all hosts
// share. Digests depend on other effects.
func (e effects) addScripts(t *testing.T, want desired.Cluster) {
	for i, h := range want.Hosts() {
		if i != 0 && i != len(want.ControlPlane) {
			continue
		}
		text, err := script.Render(script.Input{
			Input: componentconfig.Input{
				Want: want, Host: h, NodeName: h.Hostname, Arch: "amd64", Network: plugins.Host(want),
			},
			OS: "debian",
		})
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ = strings.Cut(text, "\n# Functions that all stages share.")
		e[fmt.Sprintf("script of host %d", i+1)] = slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "HOST_DIGESTS=") || strings.HasPrefix(line, "NODE_DIGESTS=")
		})
	}
}

func (e effects) addObjects(t *testing.T, want desired.Cluster, machines []map[string]any) {
	rendered, err := addons.Render(want)
	if err != nil {
		t.Fatal(err)
	}
	release, isRelease, err := addons.NetworkRelease(want)
	if err != nil {
		t.Fatal(err)
	}
	if isRelease {
		e["Helm release "+release.Name] = yamlLines(t, release.Values)
	}
	for _, addon := range rendered {
		for _, o := range addon.Objects {
			e[o.GetKind()+" "+o.GetName()] = yamlLines(t, o.Object)
		}
	}
	for i, o := range machines {
		e[fmt.Sprintf("MachineDeployment %d", i+1)] = yamlLines(t, o)
	}
}

func yamlLines(t *testing.T, of any) []string {
	t.Helper()
	text, err := yaml.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// addPlans adds the plans of an installation on bare hosts, and of an upgrade of a running cluster.
func (e effects) addPlans(t *testing.T, want desired.Cluster) {
	in := decide.Input{Want: want, Config: componentconfig.Digests(want, want.Hosts()...), Addons: map[string]string{}}
	rendered, err := addons.Render(want)
	if err != nil {
		t.Fatal(err)
	}
	in.Is.Hosts = map[string]observed.Host{}
	for _, h := range want.Hosts() {
		in.Is.Hosts[h.ID] = decidetest.Bare(h)
	}
	applied := map[string]string{}
	applied[desired.ControllersAddon] = "of an earlier manifest"
	for _, addon := range rendered {
		in.Addons[addon.Name], applied[addon.Name] = addon.Digest, addon.Digest
	}
	e["plan of an installation"] = stepLines(t, in)

	const older = "1.36.1"
	in.CA = decidetest.CA
	in.Is.API = observed.API{Reached: observed.Yes, Version: older, Addons: applied, Via: want.ControlPlane[0].ID}
	in.Is.API.Record = &observed.Record{Cluster: want.Name}
	in.Is.Etcd.Reached = observed.Yes
	for _, h := range want.Hosts() {
		is, node := decidetest.Member(h), decidetest.ReadyNode(h)
		is.Marker.Cluster, is.Kubelet.Version, node.KubeletVersion = want.Name, older, older
		is.Digests = in.Config[h.ID]
		if h.Role == desired.ControlPlane {
			is.APIServerVersion = older
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, decidetest.Voter(h))
		}
		in.Is.Hosts[h.ID] = is
		in.Is.API.Nodes = append(in.Is.API.Nodes, node)
	}
	e["plan of an upgrade"] = stepLines(t, in)
}

func stepLines(t *testing.T, in decide.Input) []string {
	t.Helper()
	p, _ := plan.Build(plan.Input{Decide: in})
	if p.Blocked != "" || len(p.Operator) > 0 {
		return []string{"blocked: " + p.Blocked + fmt.Sprint(p.Operator)}
	}
	var out []string
	for _, s := range p.Steps {
		after := slices.Concat(s.Needs, s.After)
		slices.Sort(after)
		intent, err := json.Marshal(s.Intent)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s: %s, after %v, %s", s.ID, s.Title, after, intent))
	}
	return out
}

// addTargets adds the addresses and logins of hosts.
func (e effects) addTargets(t *testing.T, want desired.Cluster, dir string) {
	for i, h := range want.Hosts() {
		target, err := workspace.Target(h)
		if err != nil {
			t.Fatal(err)
		}
		e[fmt.Sprintf("SSH to host %d", i+1)] = targetLines("", target, dir)
	}
}

func targetLines(before string, t host.Target, dir string) []string {
	out := []string{
		before + "address " + t.Address, fmt.Sprintf("%sport %d", before, t.Port), before + "user " + t.User,
		before + "key " + strings.ReplaceAll(t.KeyFile, dir, "DIR"),
		before + "certificate " + strings.ReplaceAll(t.CertFile, dir, "DIR"), before + "agent " + t.AgentSocket,
	}
	for _, key := range t.HostKeys {
		out = append(out, before+"host key "+ssh.FingerprintSHA256(key))
	}
	for _, b := range t.Bastions {
		out = append(out, targetLines("bastion: ", b, dir)...)
	}
	return out
}

// findChange returns a new line and its place: the first with the mark, in the order of the places' names, or else the
// first of all. If no line is new, it returns a removed one.
func (e effects) findChange(from effects, mark string) string {
	first := ""
	for _, way := range []struct {
		sign     string
		old, new effects
	}{{"+", from, e}, {"-", e, from}} {
		for _, place := range slices.Sorted(maps.Keys(way.new)) {
			for _, line := range way.new[place] {
				line = strings.TrimSpace(line)
				if line == "" || slices.ContainsFunc(way.old[place], func(old string) bool {
					return strings.TrimSpace(old) == line
				}) {
					continue
				}
				found := fmt.Sprintf("%s: %s %s", place, way.sign, shortenLine(line, mark))
				if mark != "" && strings.Contains(line, mark) {
					return found
				}
				first = cmp.Or(first, found)
			}
		}
		if first != "" {
			return first
		}
	}
	return ""
}

// shortenLine shortens a line to a recognizable part that contains the mark.
func shortenLine(line, mark string) string {
	const most, before = 160, 100
	if len(line) <= most {
		return line
	}
	at := max(strings.Index(line, mark), 0)
	from := max(min(at-before, len(line)-most), 0)
	return "…" + line[from:min(from+most, len(line))] + "…"
}

// markOf returns the last text in a value that identifies it in the effects, or "" if there is none.
func markOf(value any) string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Backward(slices.Sorted(maps.Keys(v))) {
			if mark := markOf(v[key]); mark != "" {
				return mark
			}
		}
	case []any:
		if len(v) > 0 {
			return markOf(v[len(v)-1])
		}
	case string:
		line, _, _ := strings.Cut(strings.TrimSuffix(v, "\n"), "\n")
		return line
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}
