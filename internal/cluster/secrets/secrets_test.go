package secrets

import (
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func secret(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "default"},
		"data": map[string]any{"a": "YQ=="}, "ofTheFuture": "x",
	}}
}

// pages tracks the next page of the list, as the fake client does not pass on the continue token.
type pages struct{ next int }

// cluster returns a client with Secrets a, b and c in two pages, and the recorded writes.
func cluster(t *testing.T) (*fake.FakeDynamicClient, *[]string, *pages) {
	t.Helper()
	at := &pages{}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{secretsResource(): "SecretList"}, secret("a"), secret("b"), secret("c"))
	client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "SecretList", "apiVersion": "v1"}}
		if at.next++; at.next == 1 {
			list.Items = []unstructured.Unstructured{*secret("a"), *secret("b")}
			list.SetContinue("more")
			return true, list, nil
		}
		if at.next > 2 {
			t.Error("more is asked for than there is")
		}
		list.Items = []unstructured.Unstructured{*secret("c")}
		return true, list, nil
	})
	written := &[]string{}
	client.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o := action.(clienttesting.UpdateAction).GetObject().(*unstructured.Unstructured)
		if o.Object["ofTheFuture"] != "x" {
			return true, nil, fmt.Errorf("%s has lost a field", o.GetName())
		}
		*written = append(*written, o.GetName())
		return false, nil, nil
	})
	return client, written, at
}

func TestEverySecretIsWrittenAgain(t *testing.T) {
	t.Parallel()
	client, written, _ := cluster(t)
	var told []int
	if err := (Rewriter{client}).RewriteSecrets(t.Context(), func(n int) { told = append(told, n) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(*written, []string{"a", "b", "c"}) || !slices.Equal(told, []int{2, 3}) {
		t.Errorf("written %v, told %v", *written, told)
	}
}

// Another client changes one Secret meanwhile, and deletes another.
func TestWhoChangesASecretMeanwhileWins(t *testing.T) {
	t.Parallel()
	client, written, _ := cluster(t)
	conflicts := 0
	client.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch o := action.(clienttesting.UpdateAction).GetObject().(*unstructured.Unstructured); {
		case o.GetName() == "a" && conflicts == 0:
			conflicts++
			return true, nil, apierrors.NewConflict(secretsResource().GroupResource(), "a", nil)
		case o.GetName() == "b":
			return true, nil, apierrors.NewNotFound(secretsResource().GroupResource(), "b")
		}
		return false, nil, nil
	})
	if err := (Rewriter{client}).RewriteSecrets(t.Context(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(*written, []string{"a", "c"}) || conflicts != 1 {
		t.Errorf("written %v after %d conflicts", *written, conflicts)
	}
}

// A list whose continue token has expired starts again.
func TestAnExpiredListBeginsAgain(t *testing.T) {
	t.Parallel()
	client, written, at := cluster(t)
	expired := false
	client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if at.next == 1 && !expired {
			at.next, expired = 0, true
			return true, nil, apierrors.NewResourceExpired("too old")
		}
		return false, nil, nil
	})
	if err := (Rewriter{client}).RewriteSecrets(t.Context(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(*written, []string{"a", "b", "a", "b", "c"}) {
		t.Errorf("written %v", *written)
	}
}

func TestAWebhookThatRefusesEndsIt(t *testing.T) {
	t.Parallel()
	client, _, _ := cluster(t)
	client.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", nil)
	})
	if err := (Rewriter{client}).RewriteSecrets(t.Context(), func(int) {}); err == nil {
		t.Error("what could not be written was passed over")
	}
}
