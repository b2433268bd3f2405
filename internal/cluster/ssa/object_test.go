package ssa

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

// lateKinds is a mapper that knows a kind after a reset.
type lateKinds struct {
	*meta.DefaultRESTMapper
	asked int
}

func (l *lateKinds) Reset() {
	l.asked++
	l.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Late"}, meta.RESTScopeNamespace)
}

func late(name string, replicas int64) *unstructured.Unstructured {
	o := thing("Late", "kube-system", name)
	o.SetAPIVersion("example.com/v1")
	o.Object["spec"] = map[string]any{"replicas": replicas}
	return &o
}

func TestObjectsAreCreatedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	kinds := &lateKinds{DefaultRESTMapper: meta.NewDefaultRESTMapper(nil)}
	lists := map[schema.GroupVersionResource]string{
		{Group: "example.com", Version: "v1", Resource: "lates"}: "LateList",
	}
	dyn := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	c := &Applier{dynamic: dyn, kinds: kinds, manager: "kubeone", namespace: "default"}
	replicas := func(name string) int64 {
		t.Helper()
		where, err := c.Resource(late(name, 0))
		if err != nil {
			t.Fatal(err)
		}
		is, err := where.Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return -1
		}
		if err != nil {
			t.Fatal(err)
		}
		n, _, _ := unstructured.NestedInt64(is.Object, "spec", "replicas")
		return n
	}
	if err := c.Create(t.Context(), late("a", 1)); err != nil || kinds.asked != 1 {
		t.Fatalf("%v; asked anew %d times for a kind that was defined meanwhile, want once", err, kinds.asked)
	}
	if err := c.Create(t.Context(), late("a", 2)); err != nil || replicas("a") != 1 {
		t.Errorf("%v: %d replicas, want what was there first", err, replicas("a"))
	}
	if err := c.Merge(t.Context(), late("a", 0), []byte(`{"spec":{"replicas":3}}`)); err != nil || replicas("a") != 3 {
		t.Errorf("%v: %d replicas, want 3", err, replicas("a"))
	}
	err := c.Merge(t.Context(), late("b", 0), []byte(`{"spec":{"replicas":3}}`))
	if err == nil || !strings.Contains(err.Error(), "Late kube-system/b") {
		t.Errorf("a change of what is not there: %v", err)
	}
	all := []unstructured.Unstructured{*late("a", 0), *late("b", 0)}
	for range 2 {
		if err := c.Delete(t.Context(), all); err != nil || replicas("a") != -1 {
			t.Errorf("%v: %d replicas, want it deleted", err, replicas("a"))
		}
	}
}
