package problem

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kubeone/internal/testutil/golden"

	"github.com/google/go-cmp/cmp"
)

// sampleParameters returns values for the parameters, by name.
func sampleParameters() Parameters {
	return Parameters{
		"authorities": "etcd and front-proxy", "addon": "ingress", "release": "web/web", "plugin": "cilium",
		"address": "203.0.113.13", "alarms": []string{"NOSPACE"}, "apiServer": "1.36.3",
		"problem": "admission webhook policies.example.com denied the request",
		"files":   []string{"/etc/containerd/config.toml", "/var/lib/kubelet/config.yaml"},
		"ca":      "sha256:bbbb", "cas": []string{"sha256:aaaa", "sha256:bbbb"},
		"certificates": []string{"apiserver", "etcd/peer"},
		"apps":         []string{"kube-dns", "kube-proxy"},
		"cluster":      "alpha", "command": "kubeone recover -m MANIFEST --from BACKUP --identity KEYFILE",
		"component": "scheduler",
		"nodes":     []string{"worker-1", "worker-2"},
		"count":     1, "deployed": "flannel", "error": "dial tcp 203.0.113.13:22: i/o timeout", "have": 900,
		"healthy": 1,
		"hosts":   []string{"cp-1", "cp-2", "cp-3"}, "items": []string{"kubelet.conf", "PKI"}, "kernel": "4.18.0",
		"id": "cp-a", "says": "cp-b", "owner": "host cp-b", "other": "203.0.113.14", "found": "203.0.113.15",
		"containerd": "1.7.22", "kubelet": "1.32.9", "limit": "30s", "list": "controlPlane.hosts",
		"digest": "0a1b2c", "file": "/etc/kubernetes/enc.yaml", "key": "kubeone-1",
		"machineID": "0a1b2c", "machine": "kube-system/pool-1",
		"machines": []string{"w-1 (Machine kube-system/pool-1)"},
		"member":   "cp-3 (8e9e05c52164694d)", "minimum": "4.19", "name": "cp-3", "need": 1700,
		"newer": []string{"kubelet of w-1 1.36.4"},
		"names": []string{"old.example.com", "192.0.2.10"},
		"next":  "1.37", "node": "w-1", "os": "plan9", "parts": []string{"certificates"},
		"peers": []string{"https://10.0.0.3:2380"},
		"pod":   "kube-apiserver", "port": 6443, "process": "haproxy", "quorum": 2, "run": "20260810-025648-7f3a",
		"running": "1.36.3",
		"tools":   []string{"iptables", "losetup"},
		"own":     "10-flannel.conflist", "pods": []string{"coredns-1 on w-1 (10.88.0.2)"},
		"subnets": []string{"10.244.0.0/16"},
		"ports":   []string{"10248 (kubelet, user 1000)"},
		"skew":    "31s", "state": "down", "step": "join-etcd", "supported": []string{"debian", "ubuntu"},
		"units":  []string{"containerd", "kubelet"},
		"holder": "the API endpoint",
		"known":  "sha256:aaaa", "offered": "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8",
		"advice":   "put the hostname back",
		"endpoint": "lb.example.com:6443", "version": "1.36.3", "voters": 3, "wanted": "beta",
		"described": "a manifest", "given": "a Cluster and Machines", "form": "objects",
	}
}

// sampleProblem returns a problem with sample values.
func sampleProblem(t *testing.T, r row) Problem {
	t.Helper()
	p := Problem{Code: r.code, Host: "203.0.113.13", Parameters: Parameters{}}
	for _, name := range placeholders(r.what + r.do) {
		value, ok := sampleParameters()[name]
		if !ok && name != "host" {
			t.Errorf("%s: no sample for %s", r.code, name)
		}
		if ok {
			p.Parameters[name] = value
		}
	}
	if err := Check(p.Code, p.Parameters); err != nil {
		t.Error(err)
	}
	return p
}

func TestTextsOfAllCodes(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "# %s\n", s.title)
		for _, r := range s.rows {
			p := sampleProblem(t, r)
			fmt.Fprintf(&b, "\n%s\n", p)
			if r.what != "" {
				fmt.Fprintf(&b, "  %s: %s\n", p.Class(), p.Text())
			}
			fmt.Fprintf(&b, "  > %s\n", p.Remedy())
		}
		b.WriteString("\n")
	}
	golden.Check(t, "testdata/texts.txt", b.String())
}

func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`# Problems

<!-- written by go test ./internal/model/problem -update -->

Every problem has a code, and the meaning of a code never changes. Programs should compare codes, not messages; JSON
output contains the code and its parameters. In the messages below, *{name}* stands for a parameter.
`)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", s.title, s.about)
		if s.rows[0].what == "" {
			b.WriteString("| code | message |\n|---|---|\n")
		} else {
			b.WriteString("| code | class | message | meaning | what to do |\n|---|---|---|---|---|\n")
		}
		for _, r := range s.rows {
			if r.what == "" {
				fmt.Fprintf(&b, "| `%s` | %s |\n", r.code, markdownText(r.do))
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.code, r.class, markdownText(r.what), r.meaning,
				markdownText(r.do))
		}
	}
	golden.Check(t, "../../../docs/problems.md", b.String())
}

// markdownText returns a text for Markdown.
func markdownText(text string) string {
	return regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(strings.ReplaceAll(text, "|", `\|`), "*{$1}*")
}

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[Code]bool{}
	for _, s := range sections {
		for _, r := range s.rows {
			switch {
			case seen[r.code]:
				t.Errorf("%s has two rows", r.code)
			case !regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`).MatchString(string(r.code)):
				t.Errorf("%s cannot be the reason of a condition", r.code)
			case r.do == "", r.what != "" && r.class == "", r.what == "{error}" && r.meaning == "":
				t.Errorf("%s lacks a text or a class", r.code)
			case strings.HasSuffix(r.what, "."), r.what != "" && strings.HasSuffix(r.do, "."):
				t.Errorf("%s: what and do must not end with a period", r.code)
			case r.what == "" && !strings.HasSuffix(r.do, "."):
				t.Errorf("%s: do must end with a period", r.code)
			}
			seen[r.code] = true
		}
	}
	for code := range declaredCodes(t) {
		if !seen[Code(code)] {
			t.Errorf("%s has no row", code)
		}
	}
}

// declaredCodes returns the constants of codes.go.
func declaredCodes(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			out[v.Names[0].Name] = true
			if value := v.Values[0].(*ast.BasicLit).Value; value != `"`+v.Names[0].Name+`"` {
				t.Errorf("%s is %s", v.Names[0].Name, value)
			}
		}
		return true
	})
	return out
}

// A code that the product never produces is dead.
func TestEveryCodeIsProduced(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(path, "../../model/problem/") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`\bproblem\.([A-Z]\w*)`).FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for code := range declaredCodes(t) {
		if !used[code] {
			t.Errorf("nothing produces %s", code)
		}
	}
}

func TestCheckFindsMistakes(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]Problem{
		`no code "Nothing"`:                           {Code: "Nothing"},
		"PortTaken lacks the parameter port":          {Code: PortTaken, Parameters: Parameters{"process": "x"}},
		"HostEmpty has no use for the parameter port": {Code: HostEmpty, Parameters: Parameters{"port": 1}},
		"HostFenced: the parameter run is a float64":  {Code: HostFenced, Parameters: Parameters{"run": 1.5}},
		"": {Code: HostFenced, Parameters: Parameters{"run": "r"}},
	} {
		got := ""
		if err := Check(p.Code, p.Parameters); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
	if Takes(HostEmpty, "port") || !Takes(PortTaken, "port") {
		t.Error("what a code takes")
	}
	if got := (Problem{Code: HostFenced}).Text(); got != "fenced by a cluster recovery (run unknown)" {
		t.Errorf("missing value: %q", got)
	}
}

func TestJSONKeepsCodesAndTypes(t *testing.T) {
	t.Parallel()
	in := []Instruction{{
		Host: "203.0.113.13", Problems: []Problem{
			{Code: PortTaken, Host: "203.0.113.13", Parameters: Parameters{"port": 6443, "process": "haproxy"}},
			{Code: HostEmpty},
		},
		Steps: []Step{
			{Code: BringBackHosts, Parameters: Parameters{"count": 1, "hosts": []string{"cp-1", "cp-2"}}},
			{Code: AwaitHealthy},
		},
	}}
	text, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/instruction.json", string(text)+"\n")
	var out []Instruction
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if in[0].Reason() != "port 6443 is taken by haproxy; has no Kubernetes data" ||
		!slices.Equal(in[0].Texts()[1:], []string{in[0].Steps[1].Text()}) {
		t.Errorf("%q, %q", in[0].Reason(), in[0].Texts())
	}
	for _, bad := range []string{`{"parameters":{"x":{}}}`, `{"parameters":7}`, `7`} {
		if json.Unmarshal([]byte(bad), &Problem{}) == nil {
			t.Errorf("%s was read", bad)
		}
	}
	if json.Unmarshal([]byte("7"), &Instruction{}) == nil {
		t.Error("a number was read as an instruction")
	}
	if !Has(in[0].Problems, HostEmpty) || Has(in[0].Problems, HostFenced) {
		t.Error("what it has")
	}
}
