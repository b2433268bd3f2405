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
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/golden"
	"kubeone/internal/text/diff"
)

const (
	doc      = "../../docs/json.md"  // describes the JSON documents
	stepsDoc = "../../docs/steps.md" // describes the kinds of steps
)

// sections returns the documents by the headings of the description, each with its type and an example, if the
// description has one.
func sections(t *testing.T) map[string]struct {
	of      any
	example string
} {
	t.Helper()
	history, err := HistoryJSON("prod", runs()[2:3])
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
		"Plan": {PlanDocument{}, ""}, "Status": {Report{}, ""}, "Events": {apply.Event{}, events},
		"History": {HistoryDocument{}, string(history)}, "Problem": {problem.Document{}, ""},
		"Instruction": {problem.InstructionDocument{}, ""},
	}
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
			diff.Summary("kubelet", "the host's files were not read: connection lost"),
		}},
		{Changes: []diff.Change{dns}},
	}
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

// paths returns the fields of a type by their names in the description: "steps[].intent.kind". The description of
// problems and instructions has a section for each.
func paths(of reflect.Type, prefix string) []string {
	var out []string
	for f := range of.Fields() {
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
		switch inner {
		case reflect.TypeFor[problem.Problem](), reflect.TypeFor[problem.Instruction](), reflect.TypeFor[time.Time]():
			continue
		}
		if inner.Kind() == reflect.Struct {
			out = append(out, paths(inner, prefix+name+".")...)
		}
	}
	return out
}

// item matches an item of a list that begins with names of fields.
var item = regexp.MustCompile("(?m)^- (`[^`]+`(?:,\\s+`[^`]+`)*)(?::|$)")

// described returns the fields that a section describes.
func described(section string) []string {
	var out []string
	for _, m := range item.FindAllStringSubmatch(section, -1) {
		for path := range strings.SplitSeq(m[1], ",") {
			out = append(out, strings.Trim(path, "` \n"))
		}
	}
	slices.Sort(out)
	return out
}

// isCommon reports whether the description's introduction describes a field.
func isCommon(path string) bool { return path == "format" || path == "cluster" }

// example matches the code block of an example.
var example = regexp.MustCompile("(?s)```json\n(.*?)```")

// section returns the text below a heading of a description.
func section(t *testing.T, text, name string) string {
	t.Helper()
	_, below, found := strings.Cut(text, "\n## "+name+"\n")
	if !found {
		t.Fatalf("there is no section %q", name)
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
		want := slices.DeleteFunc(paths(reflect.TypeOf(s.of), ""), isCommon)
		slices.Sort(want)
		if diff := cmp.Diff(want, described(section(t, string(text), name))); diff != "" {
			t.Errorf("%s, section %s (-fields of the program +described):\n%s", doc, name, diff)
		}
	}
}

func TestEveryParameterOfAStepIsDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(stepsDoc)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, k := range step.Kinds() {
		want = append(want, parameters(k)...)
	}
	slices.Sort(want)
	want = slices.Compact(want) // kinds share parameters
	if diff := cmp.Diff(want, described(section(t, string(text), "Parameters"))); diff != "" {
		t.Errorf("%s (-parameters of the program +described):\n%s", stepsDoc, diff)
	}
}

// parameters returns the fields of a kind's parameters.
func parameters(k step.Kind) []string {
	if k.Params() == nil {
		return nil
	}
	return paths(reflect.TypeOf(k.Params()), "")
}

// kindsList returns the kinds of steps as a list for each place. Kinds with equal effects and parameters share an item.
func kindsList() string {
	var places, items []string
	names, at := map[string][]string{}, map[string]string{}
	for _, k := range step.Kinds() {
		text := ": " + k.About()
		var own []string
		for _, name := range parameters(k) {
			if name = strings.TrimSuffix(name, "[]"); !strings.ContainsAny(name, ".[") {
				own = append(own, "`"+name+"`")
			}
		}
		if len(own) > 0 {
			text += " (" + strings.Join(own, ", ") + ")"
		}
		place := string(k.Place())
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
		if names[text] == nil {
			items = append(items, text)
		}
		names[text], at[text] = append(names[text], "`"+string(k)+"`"), place
	}
	var out strings.Builder
	for _, place := range places {
		fmt.Fprintf(&out, "\n### %s%s\n\n", strings.ToUpper(place[:1]), place[1:])
		for _, text := range items {
			if at[text] == place {
				lines := wrapText(strings.Join(names[text], ", ")+text, 118)
				fmt.Fprintf(&out, "- %s\n", strings.Join(lines, "\n  "))
			}
		}
	}
	return out.String()
}

// TestEveryKindOfStepIsDescribed also writes the list, with -update.
func TestEveryKindOfStepIsDescribed(t *testing.T) { //nolint:paralleltest // it may rewrite the description
	text, err := os.ReadFile(stepsDoc)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n`go test ./internal/view -update` writes this list from the table in " +
		"`internal/plan/step`. Parameters are\n" +
		"in brackets.\n" + kindsList()
	below := section(t, string(text), "Kinds")
	if golden.Update() {
		updated := strings.Replace(string(text), "\n## Kinds\n"+below, "\n## Kinds\n"+want, 1)
		if err := os.WriteFile(stepsDoc, []byte(updated), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, below); diff != "" {
		t.Errorf("%s, section Kinds (-table +described):\n%s", stepsDoc, diff)
	}
}

// TestExamplesAreCurrent also rewrites the examples, with -update.
func TestExamplesAreCurrent(t *testing.T) { //nolint:paralleltest // it may rewrite the description
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	updated := string(text)
	all := sections(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].example == "" {
			continue
		}
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

// TestFormatsAreDescribed fails for a new format until the description names it.
func TestFormatsAreDescribed(t *testing.T) {
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
