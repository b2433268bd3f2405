package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/model/observed"
)

// fakeObjects is an API server's objects, by name.
type fakeObjects struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	forced  map[string]bool // whether the last apply of the object was forced
	deleted []string
	fail    error // of every apply
}

func (f *fakeObjects) react(action clienttesting.Action) (bool, runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch a := action.(type) {
	case clienttesting.PatchActionImpl:
		if f.fail != nil {
			return true, nil, f.fail
		}
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(a.Patch, &o.Object); err != nil {
			return true, nil, err
		}
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: apicall.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		}})
		if old := f.objects[a.Name]; old != nil {
			o.SetManagedFields(append(old.GetManagedFields(), o.GetManagedFields()...))
		}
		f.forced[a.Name] = a.PatchOptions.Force != nil && *a.PatchOptions.Force
		f.objects[a.Name] = o
		return true, o, nil
	case clienttesting.GetActionImpl:
		if o := f.objects[a.Name]; o != nil {
			return true, o, nil
		}
		return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), a.Name)
	case clienttesting.DeleteActionImpl:
		f.deleted = append(f.deleted, a.Name)
		delete(f.objects, a.Name)
		return true, nil, nil
	}
	return false, nil, nil
}

func object(name string) unstructured.Unstructured {
	o := unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion("v1")
	o.SetKind("ConfigMap")
	o.SetNamespace("web")
	o.SetName(name)
	o.SetUID(types.UID(name))
	return o
}

func objects(names ...string) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for _, name := range names {
		out = append(out, object(name))
	}
	return out
}

func identities(names ...string) []observed.AddonObject {
	var out []observed.AddonObject
	for _, name := range names {
		o := object(name)
		out = append(out, resources.Identify(&o))
	}
	return out
}

// handOver labels an object as kubectl does.
func handOver(o *unstructured.Unstructured) {
	o.SetLabels(map[string]string{resources.AddonLabel: "web"})
	o.SetManagedFields(append(o.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: "kubectl-label", Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:kubeone.io/addon":{}}}}`),
	}))
}

func newKeeper(existing ...unstructured.Unstructured) (Keeper, *fakeObjects) {
	f := &fakeObjects{objects: map[string]*unstructured.Unstructured{}, forced: map[string]bool{}}
	for i := range existing {
		f.objects[existing[i].GetName()] = &existing[i]
	}
	dyn := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	dyn.PrependReactor("*", "*", f.react)
	kube := kubefake.NewClientset()
	return Keeper{Kubernetes: kube, Applier: ssa.New(kube, dyn)}, f
}

// inventory returns the names of the objects in the inventory; foreign ones end with "!".
func (k Keeper) names(t *testing.T, addon string) string {
	t.Helper()
	all, err := List(t.Context(), k.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	held, found := all[addon]
	if !found {
		return "none"
	}
	var names []string
	for _, o := range held.Objects {
		if o.Foreign {
			o.Name += "!"
		}
		names = append(names, o.Name)
	}
	return held.Problem + strings.Join(names, " ")
}

func (k Keeper) apply(t *testing.T, c Change) {
	t.Helper()
	c.Addon = "web"
	if err := k.ApplyAddon(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestObjectsThatLeaveAnAddonAreDeleted(t *testing.T) {
	t.Parallel()
	k, api := newKeeper()
	k.apply(t, Change{Objects: objects("a", "b", "c")})
	if got := k.names(t, "web"); got != "a b c" {
		t.Errorf("inventory %s", got)
	}
	k.apply(t, Change{Objects: objects("a", "d"), Delete: identities("b", "d")})
	if got := k.names(t, "web"); got != "a d c" { // c is not in the plan's list
		t.Errorf("inventory %s", got)
	}
	if diff := cmp.Diff([]string{"b"}, api.deleted); diff != "" {
		t.Error(diff)
	}
	if err := k.RemoveAddon(t.Context(), "web", identities("a", "c", "d")); err != nil {
		t.Fatal(err)
	}
	if got := k.names(t, "web"); got != "none" || len(api.objects) > 0 {
		t.Errorf("inventory %s, objects %v", got, api.objects)
	}
}

func TestForeignObjectsAreNeitherTakenOverNorDeleted(t *testing.T) {
	t.Parallel()
	labelled := object("mine")
	handOver(&labelled)
	k, api := newKeeper(object("theirs"), labelled)
	k.apply(t, Change{Objects: objects("theirs", "mine", "new")})
	if got := k.names(t, "web"); got != "theirs! mine new" {
		t.Errorf("inventory %s", got)
	}
	if diff := cmp.Diff(map[string]bool{"theirs": false, "mine": true, "new": true}, api.forced); diff != "" {
		t.Error(diff)
	}
	k.apply(t, Change{Objects: objects("theirs", "new")}) // it stays foreign, although kubeone has applied it
	if got := k.names(t, "web"); got != "theirs! new mine" || api.forced["theirs"] {
		t.Errorf("inventory %s", got)
	}
	handOver(api.objects["theirs"])
	k.apply(t, Change{Objects: objects("theirs", "new")})
	if got := k.names(t, "web"); got != "theirs new mine" || !api.forced["theirs"] {
		t.Errorf("inventory %s", got)
	}
	deleted := identities("theirs", "new")
	deleted[0].Foreign = true
	if err := k.RemoveAddon(t.Context(), "web", deleted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new"}, api.deleted); diff != "" {
		t.Error(diff)
	}
}

func TestAnObjectThatWasReplacedIsNotDeleted(t *testing.T) {
	t.Parallel()
	k, api := newKeeper()
	k.apply(t, Change{Objects: objects("a")})
	again := object("a") // deleted and created by another
	api.objects["a"] = &again
	if err := k.RemoveAddon(t.Context(), "web", identities("a")); err != nil || len(api.deleted) > 0 {
		t.Errorf("deleted %v, %v", api.deleted, err)
	}
}

func TestKubeonesOwnAddonsTakeFieldsOver(t *testing.T) {
	t.Parallel()
	k, api := newKeeper(object("a"))
	k.apply(t, Change{Objects: objects("a"), Own: true})
	if !api.forced["a"] {
		t.Error("not forced")
	}
}

// A run that ends between any two requests leaves an inventory with all objects that exist.
func TestTheInventoryIsNeverBehindTheObjects(t *testing.T) {
	t.Parallel()
	k, api := newKeeper()
	k.apply(t, Change{Objects: objects("a", "b")})
	api.fail = apierrors.NewBadRequest("the program is killed here")
	err := k.ApplyAddon(t.Context(), Change{Addon: "web", Objects: objects("b", "c"), Delete: identities("a")})
	if err == nil {
		t.Fatal("applied")
	}
	if got := k.names(t, "web"); got != "b c a" {
		t.Errorf("inventory %s", got)
	}
	api.fail = nil
	k.apply(t, Change{Objects: objects("b", "c"), Delete: identities("a")})
	if got := k.names(t, "web"); got != "b c" || len(api.deleted) != 1 {
		t.Errorf("inventory %s, deleted %v", got, api.deleted)
	}
}

func TestConflictsSayHowToTakeOver(t *testing.T) {
	t.Parallel()
	k, api := newKeeper(object("theirs"))
	api.fail = apierrors.NewApplyConflict([]metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "helm"`, Field: ".data.a",
	}}, "conflict")
	err := k.ApplyAddon(t.Context(), Change{Addon: "web", Objects: objects("theirs")})
	var failed *apicall.Error
	if !errors.As(err, &failed) || failed.Class != apicall.Operator ||
		!strings.Contains(err.Error(), "label it kubeone.io/addon=web") {
		t.Errorf("%v", err)
	}
}

func TestInventoriesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                  "unexpected end of JSON",
		"{}":                "cannot unmarshal",
		`[{"kind": "Pod"}]`: "objects[0] is not valid",
		`[{"apiVersion": "v1", "kind": "Pod", "name": "a b"}]`: "objects[0] is not valid",
		"[" + strings.Repeat(`{},`, maxObjects) + "{}]":        "more than 20000 objects",
	} {
		kube := kubefake.NewClientset(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: "kubeone-addon-web", Namespace: "kube-system", Labels: map[string]string{label: "web"},
			},
			Data: map[string]string{objectsKey: text},
		})
		all, err := List(context.Background(), kube)
		if err != nil || len(all) != 1 || !strings.Contains(all["web"].Problem, says) || all["web"].Objects != nil {
			t.Errorf("%.40s: %v, %v", text, all["web"].Problem, err)
		}
	}
}
