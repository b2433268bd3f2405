package live

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"kubeone/internal/cluster/ssa"
	"kubeone/internal/model/observed"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return &o
}

const wanted = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: net, labels: {app: net}}
data: {a: "1", b: "2"}
`

// applier returns an Applier for a fake API with the objects. An apply returns the result of then.
func applier(t *testing.T, then func(patch clienttesting.PatchAction) (runtime.Object, error),
	holds ...*unstructured.Unstructured) (a *ssa.Applier, writes *[]string) {
	t.Helper()
	all := make([]runtime.Object, 0, len(holds))
	for _, o := range holds {
		all = append(all, o)
	}
	dynamic := fake.NewSimpleDynamicClient(runtime.NewScheme(), all...)
	writes = &[]string{}
	dynamic.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "get" {
			return false, nil, nil
		}
		patch, ok := action.(clienttesting.PatchActionImpl)
		if !ok || len(patch.PatchOptions.DryRun) == 0 {
			*writes = append(*writes, action.GetVerb())
			return true, nil, errors.New("a comparison must not write")
		}
		o, err := then(patch)
		return true, o, err
	})
	return ssa.New(kubefake.NewClientset(), dynamic), writes
}

func TestCompareApplied(t *testing.T) {
	t.Parallel()
	edited := strings.Replace(wanted, `a: "1"`, `a: "9"`, 1)
	foreign := strings.Replace(wanted, "app: net", "app: net, somebodys: own", 1)
	for name, c := range map[string]struct {
		live, then string
		want       *observed.Difference
	}{
		"as applied": {live: wanted, then: wanted},
		"what the API keeps": {
			live: strings.Replace(wanted, "name: settings", `name: settings, resourceVersion: "4", generation: 3`, 1),
			then: strings.Replace(wanted, "name: settings", `name: settings, resourceVersion: "5"`, 1),
		},
		"somebody else's field": {live: foreign, then: foreign},
		"a field by hand": {
			live: edited, then: wanted,
			want: &observed.Difference{Object: "ConfigMap net/settings", Fields: []string{"data.a"}},
		},
		"a field that is gone": {
			live: strings.Replace(wanted, `a: "1", `, "", 1), then: wanted,
			want: &observed.Difference{Object: "ConfigMap net/settings", Fields: []string{"data.a"}},
		},
		"gone": {want: &observed.Difference{Object: "ConfigMap net/settings", Missing: true}},
	} {
		var holds []*unstructured.Unstructured
		if c.live != "" {
			holds = append(holds, object(t, c.live))
		}
		then := func(clienttesting.PatchAction) (runtime.Object, error) { return object(t, c.then), nil }
		a, writes := applier(t, then, holds...)
		got := Compare(t.Context(), a, Component{Name: "net", Applied: []unstructured.Unstructured{*object(t, wanted)}})
		want := observed.Comparison{}
		if c.want != nil {
			want.Differences = []observed.Difference{*c.want}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(*writes) > 0 {
			t.Errorf("%s: writes %v\n%s", name, *writes, diff)
		}
	}
}

func TestWhatCannotBeComparedIsAProblemAndNoDifference(t *testing.T) {
	t.Parallel()
	a, _ := applier(t, func(clienttesting.PatchAction) (runtime.Object, error) {
		return nil, errors.New("admission webhook\n\x1b[31mdenied")
	}, object(t, wanted))
	got := Compare(t.Context(), a, Component{Applied: []unstructured.Unstructured{*object(t, wanted)}})
	if !strings.Contains(got.Problem, "admission webhook") || strings.Contains(got.Problem, "\n") ||
		len(got.Differences) > 0 {
		t.Errorf("%+v", got)
	}
}

// Only a slow or busy API is worth a retry. A definite answer may stay the same forever.
func TestWhatWasOnlyLateMayBeComparedLater(t *testing.T) {
	t.Parallel()
	settings := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct {
		err  error
		late bool
	}{
		"no time was left":       {context.DeadlineExceeded, true},
		"the server was slow":    {apierrors.NewTimeoutError("slow", 1), true},
		"the server was busy":    {apierrors.NewTooManyRequests("busy", 1), true},
		"a webhook denies it":    {apierrors.NewForbidden(settings, "settings", errors.New("denied")), false},
		"a webhook is not there": {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"it is no object":        {apierrors.NewBadRequest("odd"), false},
	} {
		a, _ := applier(t, func(clienttesting.PatchAction) (runtime.Object, error) { return nil, c.err },
			object(t, wanted))
		got := Compare(t.Context(), a, Component{Applied: []unstructured.Unstructured{*object(t, wanted)}})
		if got.Problem == "" || got.Late != c.late {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A missing network plugin may be why a webhook does not answer. It must be reported even then.
func TestWhatCannotBeComparedHidesNothingElse(t *testing.T) {
	t.Parallel()
	a, _ := applier(t, func(clienttesting.PatchAction) (runtime.Object, error) {
		return nil, errors.New("no answer")
	}, object(t, wanted))
	gone := object(t, strings.Replace(wanted, "name: settings", "name: gone", 1))
	got := Compare(t.Context(), a, Component{Applied: []unstructured.Unstructured{*object(t, wanted), *gone}})
	want := []observed.Difference{{Object: "ConfigMap net/gone", Missing: true}}
	if diff := cmp.Diff(want, got.Differences); diff != "" || got.Problem == "" {
		t.Errorf("problem %q\n%s", got.Problem, diff)
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	check := func(settings bool, differs func(map[string]any) []string) Check {
		return Check{Kind: kind, Namespace: "net", Name: "settings", Settings: settings, Differs: differs}
	}
	many := func(map[string]any) []string { return strings.Split("k j i h g f e d c b a a", " ") }
	few := func(map[string]any) []string { return []string{"mode"} }
	difference := func(fields ...string) []observed.Difference {
		return []observed.Difference{{Object: "ConfigMap net/settings", Fields: fields}}
	}
	for name, c := range map[string]struct {
		check Check
		there bool
		want  observed.Comparison
	}{
		"there": {check(false, nil), true, observed.Comparison{}},
		"not there": {check(false, few), false, observed.Comparison{
			Differences: []observed.Difference{{Object: "ConfigMap net/settings", Missing: true}},
		}},
		"wrong":             {check(false, few), true, observed.Comparison{Differences: difference("mode")}},
		"set otherwise":     {check(true, few), true, observed.Comparison{Settings: difference("mode")}},
		"nothing to be set": {check(true, few), false, observed.Comparison{}},
		"much": {check(false, many), true,
			observed.Comparison{Differences: difference("a", "b", "c", "d", "e", "f", "g", "h")}},
	} {
		var holds []*unstructured.Unstructured
		if c.there {
			holds = append(holds, object(t, wanted))
		}
		a, _ := applier(t, nil, holds...)
		if diff := cmp.Diff(c.want, Compare(t.Context(), a, Component{Checks: []Check{c.check}})); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestNamesOfFieldsAreCut(t *testing.T) {
	t.Parallel()
	var fields []string
	long := strings.Repeat("ü", 300)
	of := func(value string) map[string]any { return map[string]any{"data": map[string]any{long: value}} }
	addDifferences("", of("1"), of("2"), &fields)
	if len(fields) != 1 || len(fields[0]) > maxPathLength || !strings.HasPrefix(fields[0], "data.ü") {
		t.Errorf("%q", fields)
	}
}
