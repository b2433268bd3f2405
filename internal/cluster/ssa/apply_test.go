package ssa

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/cluster/apicall"
)

// fixedKinds is a mapper whose kinds never change.
type fixedKinds struct{ meta.RESTMapper }

func (fixedKinds) Reset() {}

// applying is a client of a fake API with server-side apply. Applying the same object again keeps its version.
type applying struct {
	mu      sync.Mutex
	objects map[string]string // applied objects, by name
	version map[string]int
	order   []string
	fail    map[string]error // answered once, by name
	options []types.PatchType
}

func (a *applying) get(action clienttesting.Action) (bool, runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := action.(clienttesting.GetAction).GetName()
	if a.version[name] == 0 {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), name)
	}
	return true, a.answer(name), nil
}

func (a *applying) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	patch := action.(clienttesting.PatchAction)
	name := patch.GetName()
	if err := a.fail[name]; err != nil {
		delete(a.fail, name)
		return true, nil, err
	}
	a.options = append(a.options, patch.GetPatchType())
	a.order = append(a.order, name)
	if a.objects[name] != string(patch.GetPatch()) {
		a.objects[name] = string(patch.GetPatch())
		a.version[name]++
	}
	return true, a.answer(name), nil
}

func (a *applying) answer(name string) *unstructured.Unstructured {
	o := thing("Answer", "", name)
	o.SetResourceVersion(fmt.Sprint(a.version[name]))
	return &o
}

func thing(kind, namespace, name string) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func applier(t *testing.T) (*Applier, *applying) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[string]meta.RESTScope{
		"Namespace": meta.RESTScopeRoot, "ClusterRole": meta.RESTScopeRoot, "ClusterRoleBinding": meta.RESTScopeRoot,
		"ServiceAccount": meta.RESTScopeNamespace, "ConfigMap": meta.RESTScopeNamespace,
		"DaemonSet": meta.RESTScopeNamespace,
	} {
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, scope)
	}
	api := &applying{objects: map[string]string{}, version: map[string]int{}, fail: map[string]error{}}
	dyn := fake.NewSimpleDynamicClient(runtime.NewScheme())
	dyn.PrependReactor("get", "*", api.get)
	dyn.PrependReactor("patch", "*", api.patch)
	return &Applier{
		dynamic: dyn, kinds: fixedKinds{mapper}, manager: apicall.FieldManager, namespace: "default",
	}, api
}

func stack() []unstructured.Unstructured {
	return []unstructured.Unstructured{
		thing("DaemonSet", "net", "pods"), thing("ConfigMap", "net", "config"),
		thing("ClusterRoleBinding", "", "binding"),
		thing("ClusterRole", "", "role"), thing("ServiceAccount", "net", "account"), thing("Namespace", "", "net"),
	}
}

func TestApplyGoesInOrderAndReportsWhatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := applier(t)
		api.fail["config"] = apierrors.NewServiceUnavailable("restarting")
		got, err := c.Apply(t.Context(), stack())
		if err != nil {
			t.Fatal(err)
		}
		all := []string{"DaemonSet net/pods", "ConfigMap net/config", "ClusterRoleBinding binding", "ClusterRole role",
			"ServiceAccount net/account", "Namespace net"}
		if diff := cmp.Diff(Result{Objects: 6, Changed: all}, got); diff != "" {
			t.Error(diff)
		}
		slices.Sort(api.order[1:3]) // the account and the role go together
		if diff := cmp.Diff([]string{"net", "account", "role", "binding", "config", "pods"}, api.order); diff != "" {
			t.Error(diff)
		}
		if slices.ContainsFunc(api.options, func(p types.PatchType) bool { return p != types.ApplyPatchType }) {
			t.Errorf("written by %v, want server-side apply only", api.options)
		}

		again := stack()
		again[1].SetLabels(map[string]string{"new": "yes"})
		got, err = c.Apply(t.Context(), again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Result{Objects: 6, Changed: []string{"ConfigMap net/config"}}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A client that may not list everything cannot bind a policy that does not exist yet.
func TestAPolicyIsAppliedBeforeItsBinding(t *testing.T) {
	t.Parallel()
	got := groupByPhase([]unstructured.Unstructured{
		thing("ValidatingAdmissionPolicyBinding", "", "policy"), thing("ValidatingAdmissionPolicy", "", "policy"),
	})
	order := slices.DeleteFunc(got, func(phase []int) bool { return len(phase) == 0 })
	if diff := cmp.Diff([][]int{{1}, {0}}, order); diff != "" {
		t.Error(diff)
	}
}

func TestApplyStopsAtAPhaseThatFails(t *testing.T) {
	t.Parallel()
	c, api := applier(t)
	api.fail["account"] = apierrors.NewBadRequest("no")
	_, err := c.Apply(t.Context(), stack())
	if apicall.Classify(err) != apicall.Terminal || !strings.Contains(fmt.Sprint(err), "ServiceAccount net/account") {
		t.Errorf("got %v, want a terminal error about the ServiceAccount", err)
	}
	if slices.Contains(api.order, "config") || slices.Contains(api.order, "pods") {
		t.Errorf("went on: %v", api.order)
	}
}

func TestApplyOfAnUnknownKindIsTerminal(t *testing.T) {
	t.Parallel()
	c, _ := applier(t)
	_, err := c.Apply(t.Context(), []unstructured.Unstructured{thing("Unheard", "", "of")})
	if apicall.Classify(err) != apicall.Terminal || !strings.Contains(fmt.Sprint(err), "Unheard") {
		t.Errorf("got %v, want a terminal error that names the kind", err)
	}
}

func TestEstablished(t *testing.T) {
	t.Parallel()
	crd := func(status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"},
			map[string]any{"type": "Established", "status": status, "message": "m"},
		}}}}
	}
	for status, want := range map[string]bool{"True": true, "False": false} {
		if got, _, err := isEstablished(crd(status)); got != want || err != nil {
			t.Errorf("%s: got %v, %v", status, got, err)
		}
	}
	made := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": nil}}}
	if got, _, err := isEstablished(made); got || err != nil {
		t.Errorf("just made: %v, %v", got, err)
	}
	if got, _, err := isEstablished(&unstructured.Unstructured{Object: map[string]any{}}); got || err != nil {
		t.Errorf("without status: got %v, %v", got, err)
	}
}
