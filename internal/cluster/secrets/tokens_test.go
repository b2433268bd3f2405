package secrets

import (
	"encoding/base64"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// withToken returns a Secret with a token signed by the key.
func withToken(name, key string) *unstructured.Unstructured {
	s := secret(name)
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"` + key + `"}`))
	s.Object["data"] = map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(header + ".body.signature"))}
	return s
}

func TestTokensOfADroppedKeyAreMadeAnew(t *testing.T) {
	t.Parallel()
	odd := secret("odd")
	odd.Object["data"] = map[string]any{"token": "%"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{secretsResource(): "SecretList"},
		withToken("former", "old"), withToken("present", "new"), secret("none"), odd)
	var patched []string
	client.PrependReactor("patch", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p, ok := a.(clienttesting.PatchAction)
		if !ok {
			t.Fatalf("%T", a)
		}
		patched = append(patched, p.GetName()+" "+string(p.GetPatch()))
		// The token controller adds a new one.
		err := client.Tracker().Update(secretsResource(), withToken(p.GetName(), "new"), "default")
		return true, withToken(p.GetName(), "new"), err
	})
	var told []string
	tell := func(namespace, name string) { told = append(told, namespace+"/"+name) }
	if err := (Rewriter{client}).RenewTokenSecrets(t.Context(), []string{"older", "old"}, tell); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told, []string{"default/former"}) || len(patched) != 1 {
		t.Errorf("told %v, patched %v", told, patched)
	}
	if err := (Rewriter{client}).RenewTokenSecrets(t.Context(), []string{"old"}, tell); err != nil || len(told) != 1 {
		t.Errorf("once more: %v, %v", told, err)
	}
}
