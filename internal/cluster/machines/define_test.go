package machines

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/addons"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/model/desired"
)

// fakeDefinitions is an API with definitions. It stores applied objects and refuses changes to other managers' fields.
type fakeDefinitions struct {
	has    map[string]*unstructured.Unstructured // by name
	edited map[string]bool                       // names of definitions with a field changed by another manager

	mu     sync.Mutex
	writes []string // names, in order
	forced []string
}

// newFakeDefinitions returns this program's definitions in a revision; "" is another program's definitions.
func newFakeDefinitions(t *testing.T, revisions map[string]string) (*fakeDefinitions, Definer) {
	t.Helper()
	f := &fakeDefinitions{has: map[string]*unstructured.Unstructured{}, edited: map[string]bool{}}
	for name, revision := range revisions {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("apiextensions.k8s.io/v1")
		o.SetKind("CustomResourceDefinition")
		o.SetName(name)
		if revision != "" {
			o.SetAnnotations(map[string]string{RevisionAnnotation: revision})
		}
		f.put(o)
	}
	kube := fake.NewClientset()
	kube.Resources = []*metav1.APIResourceList{
		{GroupVersion: "apiextensions.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"},
		}},
		{GroupVersion: "admissionregistration.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "validatingadmissionpolicies", Kind: "ValidatingAdmissionPolicy"},
			{Name: "validatingadmissionpolicybindings", Kind: "ValidatingAdmissionPolicyBinding"},
		}},
	}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{Definitions(): "CustomResourceDefinitionList"})
	dynamic.PrependReactor("get", "*", f.get)
	dynamic.PrependReactor("patch", "*", f.patch)
	dynamic.PrependReactor("list", "*", f.list)
	return f, Definer{ssa.New(kube, dynamic)}
}

func (f *fakeDefinitions) put(o *unstructured.Unstructured) {
	o = o.DeepCopy()
	o.SetResourceVersion("1")
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "Established", "status": "True"}},
		"status", "conditions")
	f.has[o.GetName()] = o
}

func (f *fakeDefinitions) get(a clienttesting.Action) (bool, runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := a.(clienttesting.GetAction).GetName()
	if o := f.has[name]; o != nil {
		return true, o, nil
	}
	return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), name)
}

func (f *fakeDefinitions) list(a clienttesting.Action) (bool, runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList",
	}}
	for name, o := range f.has {
		if a.(clienttesting.ListAction).GetListRestrictions().Fields.Matches(fields.Set{"metadata.name": name}) {
			out.Items = append(out.Items, *o)
		}
	}
	return true, out, nil
}

func (f *fakeDefinitions) patch(a clienttesting.Action) (bool, runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	patch := a.(clienttesting.PatchActionImpl)
	force := patch.PatchOptions.Force != nil && *patch.PatchOptions.Force
	if f.edited[patch.GetName()] && !force {
		return true, nil, apierrors.NewApplyConflict([]metav1.StatusCause{{
			Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.versions",
			Message: `conflict with "kubectl-edit"`,
		}}, `Apply failed with 1 conflict: conflict with "kubectl-edit": .spec.versions`)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(patch.GetPatch()); err != nil {
		return true, nil, err
	}
	if len(patch.PatchOptions.DryRun) == 0 {
		f.writes = append(f.writes, o.GetName())
		if force {
			f.forced = append(f.forced, o.GetName())
		}
		f.put(o)
	}
	return true, o, nil
}

// If another program owns or has changed a definition, nothing is written.
func TestDefinitionsOfOthersAreNotOverwritten(t *testing.T) {
	t.Parallel()
	ours := map[string]string{}
	for _, name := range DefinitionNames() {
		ours[name] = "1"
	}
	with := func(name, revision string) map[string]string {
		out := maps.Clone(ours)
		out[name] = revision
		return out
	}
	const machine, set, host, rule = "machines.cluster.k8s.io", "machinesets.cluster.k8s.io", "hosts.kubeone.k8c.io",
		"kubeone-returning-hosts"
	for name, c := range map[string]struct {
		has    map[string]string
		edited string
		wrong  string // what the error names
		writes int
	}{
		"a new cluster":                    {writes: 10},
		"of an older program":              {has: ours, writes: 10},
		"one of a newer program":           {has: with(machine, "99999"), writes: 9},
		"machine-controller's":             {has: map[string]string{machine: ""}, wrong: machine},
		"one is another's":                 {has: with(set, ""), wrong: set},
		"Host is another's":                {has: with(host, ""), wrong: host},
		"the policy is another's":          {has: with(rule, ""), wrong: rule},
		"another has changed one of ours":  {has: ours, edited: machine, wrong: `with "kubectl-edit"`},
		"another has changed the last one": {has: ours, edited: host, wrong: host},
		"another has changed the namespace, whose fields the addon forces, too": {
			has: with(Namespace, "1"), edited: Namespace, writes: 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, client := newFakeDefinitions(t, c.has)
			api.edited[c.edited] = true
			err := client.DefineKinds(t.Context())
			if (err != nil) != (c.wrong != "") || err != nil &&
				(!strings.Contains(err.Error(), c.wrong) || apicall.Classify(err) != apicall.Operator) {
				t.Errorf("got %v, want an error about %q", err, c.wrong)
			}
			if len(api.writes) != c.writes {
				t.Errorf("it wrote %q, want %d writes", api.writes, c.writes)
			}
			if others := slices.DeleteFunc(api.forced, func(n string) bool { return n == Namespace }); len(others) > 0 {
				t.Errorf("it took over fields of %q", others)
			}
		})
	}
}

// A program keeps definitions of a later revision, so every change must increase the revision.
func TestRevisionOfTheDefinitions(t *testing.T) {
	t.Parallel()
	objects, err := definedObjects()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	const of = "dcd899caa456b4fe"
	if got := hex.EncodeToString(sum[:8]); got != of {
		t.Errorf("the definitions have changed: raise revision, and then have %q here", got)
	}
	if len(objects) != 10 {
		t.Errorf("%d objects, want the namespace, five kinds, and two policies with their bindings", len(objects))
	}
}

// The controllers' addon also applies the namespace. Neither may undo the other's changes.
func TestTheAddonsNamespaceIsThePools(t *testing.T) {
	t.Parallel()
	objects, err := definedObjects()
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := addons.Render(desired.Cluster{Controllers: &desired.Controllers{}})
	i := slices.IndexFunc(rendered, func(a addons.Addon) bool { return a.Name == desired.ControllersAddon })
	if err != nil || i < 0 {
		t.Fatalf("%d addons, %v", len(rendered), err)
	}
	if diff := cmp.Diff(objects[0].Object, rendered[i].Objects[0].Object); diff != "" {
		t.Errorf("(-pool +addon):\n%s", diff)
	}
}
