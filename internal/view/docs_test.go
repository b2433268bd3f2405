package view

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/golden"
	"kubeone/internal/text/diff"
)

// doc is the description of the JSON, from here.
const doc = "../../docs/json.md"

// sections are the documents by the headings of the description, each with its type and an example made by the program.
func sections(t *testing.T) map[string]struct {
	of      any
	example string
} {
	t.Helper()
	planned, err := PlanJSON(documentedPlan())
	if err != nil {
		t.Fatal(err)
	}
	status, err := StatusJSON(documentedStatus())
	if err != nil {
		t.Fatal(err)
	}
	history, err := HistoryJSON("prod", runs()[2:4])
	if err != nil {
		t.Fatal(err)
	}
	events := render(func(b *bytes.Buffer) {
		p := NewJSONProgress(b)
		for _, e := range documentedRun() {
			p.Event(e)
		}
	})
	return map[string]struct {
		of      any
		example string
	}{
		"Plan": {PlanDocument{}, string(planned)}, "Status": {Report{}, string(status)},
		"Events":  {apply.Event{}, events},
		"History": {HistoryDocument{}, string(history)},
	}
}

func documentedPlan() (plan.Plan, []diff.Set, decide.Decision) {
	p := restartedKubelet()
	p.Cluster = "prod"
	p.FirstContacts = map[string]string{"203.0.113.12": "SHA256:uNiVztksCsDhcc0u9e8BrA9ZYLLsWLzbgxIoZYEXAWM"}
	return p, documentedDiffs(), decide.Decision{Route: fsm.Repair, Trace: []fsm.Visit{
		{State: fsm.AskControlPlane, Event: fsm.OnUnhealthy, To: fsm.AskQuorum,
			Why: "cp-2 is restartable: kubelet is not running"},
	}}
}

// documentedDiffs are of hosts that are set otherwise, of one that was not read, and of the cluster.
func documentedDiffs() []diff.Set {
	pods, _ := diff.Of("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\nmaxPods: 110\n",
		"kind: KubeletConfiguration\nmaxPods: 90\n")
	proxy, _ := diff.Of("/etc/systemd/system/containerd.service.d/kubeone-proxy.conf",
		"[Service]\nEnvironment=\"HTTP_PROXY=http://me:one@proxy:3128\"\n",
		"[Service]\nEnvironment=\"HTTP_PROXY=http://me:two@proxy:3128\"\n")
	dns, _ := diff.Of("Deployment kube-system/coredns", "spec.replicas: 2", "spec.replicas: 3")
	return []diff.Set{
		{Hosts: []string{"worker-1", "worker-2"}, Changes: []diff.Change{pods, proxy}},
		{Hosts: []string{"worker-3"}, Changes: []diff.Change{
			diff.Unknown("kubelet", "the host's files were not read: connection lost"),
		}},
		{Changes: []diff.Change{dns}},
	}
}

// documentedStatus is a cluster with one host of each role.
func documentedStatus() StatusInput {
	st := busy()
	st.Want.ControlPlane = []desired.Host{st.Want.ControlPlane[1]}
	st.World.API.Via = st.Want.ControlPlane[0].ID
	st.World.Etcd.Members = st.World.Etcd.Members[1:2]
	st.Decision.Warnings = st.Decision.Warnings[:1]
	return st
}

// documentedRun is short and has an event of every type.
func documentedRun() []apply.Event {
	s := newStream(oneMoreWorker())
	s.start(0, "prepare/worker-2")
	s.addOutput(1, "prepare/worker-2", "containerd 2.3.5 unpacked")
	s.beat(16, "prepare/worker-2")
	s.addEvent(20, apply.Event{Type: apply.Warning, Host: "worker-2", Line: "connection lost, trying again"})
	s.endStep(22, "prepare/worker-2")
	s.start(22, "images/worker-2")
	s.fail(26.5, "images/worker-2", "exit status 1\n    | no space left on device")
	s.skipStep(26.5, "join-worker/worker-2")
	return s.finish(26.5, "worker-2: import images: exit status 1\n    | no space left on device").events
}

// paths are the fields of a type as the description names them: "steps[].intent.kind".
func paths(of reflect.Type, prefix string) []string {
	var out []string
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			out = append(out, paths(f.Type, prefix)...)
			continue
		}
		if name == "-" {
			continue
		}
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			if inner.Kind() == reflect.Slice {
				name += "[]"
			}
			inner = inner.Elem()
		}
		out = append(out, prefix+name)
		switch inner { // what writes itself
		case reflect.TypeFor[problem.Problem]():
			inner = reflect.TypeFor[problem.Document]()
		case reflect.TypeFor[problem.Instruction]():
			inner = reflect.TypeFor[problem.InstructionDocument]()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			out = append(out, paths(inner, prefix+name+".")...)
		}
	}
	return out
}

// row matches the first field of a table's row, which names fields of JSON.
var row = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")

// example matches the block of an example.
var example = regexp.MustCompile("(?s)```json\n(.*?)```")

// section is the part of the description below a heading.
func section(t *testing.T, text, name string) string {
	t.Helper()
	_, below, found := strings.Cut(text, "\n## "+name+"\n")
	if !found {
		t.Fatalf("%s has no section %q", doc, name)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	return below
}

func TestEveryFieldIsDescribedAndEveryDescribedFieldExists(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range sections(t) {
		var described []string
		for _, m := range row.FindAllStringSubmatch(section(t, string(text), name), -1) {
			for _, path := range strings.Split(m[1], ", ") {
				described = append(described, strings.Trim(path, "`"))
			}
		}
		slices.Sort(described)
		want := paths(reflect.TypeOf(s.of), "")
		if name == "Plan" {
			for _, k := range step.Kinds() {
				want = append(want, parameters(k, "steps[].intent.")...)
			}
		}
		slices.Sort(want)
		want = slices.Compact(want) // kinds share parameters
		if diff := cmp.Diff(want, described); diff != "" {
			t.Errorf("%s, section %s (-fields of the program +described):\n%s", doc, name, diff)
		}
	}
}

// parameters are the fields of a kind's parameters.
func parameters(k step.Kind, prefix string) []string {
	if k.Params() == nil {
		return nil
	}
	return paths(reflect.TypeOf(k.Params()), prefix)
}

// TestEveryKindOfStepIsDescribed also writes the table, with -update.
func TestEveryKindOfStepIsDescribed(t *testing.T) { //nolint:paralleltest // it may rewrite the description
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := "\nWritten by `go test ./internal/view -update` from the table in `internal/plan/step`.\n\n" +
		"| kind | runs | effect | parameters |\n|---|---|---|---|\n"
	for _, k := range step.Kinds() {
		var names []string
		for _, name := range parameters(k, "") {
			if !strings.ContainsAny(strings.TrimSuffix(name, "[]"), ".[") {
				names = append(names, "`"+strings.TrimSuffix(name, "[]")+"`")
			}
		}
		want += fmt.Sprintf("| `%s` | %s | %s | %s |\n", k, k.Place(), k.About(), strings.Join(names, ", "))
	}
	below := section(t, string(text), "Kinds of steps")
	if golden.Update() {
		updated := strings.Replace(string(text), "\n## Kinds of steps\n"+below, "\n## Kinds of steps\n"+want, 1)
		if err := os.WriteFile(doc, []byte(updated), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, below); diff != "" {
		t.Errorf("%s, section Kinds of steps (-table +described):\n%s", doc, diff)
	}
}

// TestExamplesAreWhatTheProgramWrites also rewrites them, with -update.
func TestExamplesAreWhatTheProgramWrites(t *testing.T) { //nolint:paralleltest // it may rewrite the description
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	updated := string(text)
	all := sections(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		below := section(t, updated, name)
		found := example.FindStringSubmatch(below)
		if found == nil {
			t.Fatalf("%s, section %s: no example", doc, name)
		}
		if golden.Update() {
			block := fmt.Sprintf("```json\n%s```", all[name].example)
			updated = strings.Replace(updated, below, strings.Replace(below, found[0], block, 1), 1)
			continue
		}
		if diff := cmp.Diff(all[name].example, found[1]); diff != "" {
			t.Errorf("%s, section %s (-written +described):\n%s", doc, name, diff)
		}
	}
	if golden.Update() && updated != string(text) {
		if err := os.WriteFile(doc, []byte(updated), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormatsAreThoseDescribed makes whoever raises a format look at the description.
func TestFormatsAreThoseDescribed(t *testing.T) {
	t.Parallel()
	got := map[string]int{
		"Plan":    plan.FormatVersion,
		"Status":  ReportFormat,
		"Events":  apply.EventFormat,
		"History": HistoryFormat,
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	for name, format := range got {
		if want := fmt.Sprintf("Format %d.", format); !strings.Contains(section(t, string(text), name), want) {
			t.Errorf("%s, section %s does not say %q", doc, name, want)
		}
	}
}
