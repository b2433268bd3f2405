package live

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/text/diff"
)

func shown(changes []diff.Change) string {
	var b strings.Builder
	for _, c := range changes {
		b.WriteString(c.Of + "\n")
		if c.Unknown != "" {
			b.WriteString("? " + c.Unknown + "\n")
		}
		for _, line := range c.Lines {
			if line[0] == '-' || line[0] == '+' {
				b.WriteString(line + "\n")
			}
		}
	}
	return b.String()
}

func TestLinesThatAnApplyWouldChange(t *testing.T) {
	t.Parallel()
	named := func(kind, name, rest string) *unstructured.Unstructured {
		return object(t, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: "+name+", namespace: net"+rest)
	}
	is := named("ConfigMap", "settings", ", resourceVersion: '1'}\ndata: {a: '0', b: '2', others: own}")
	then := named("ConfigMap", "settings", ", resourceVersion: '2'}\ndata: {a: '1', b: '2', others: own}")
	secret := func(one string) *unstructured.Unstructured {
		return named("Secret", "s", "}\ndata: {a: "+one+", b: QUJD}")
	}
	a, writes := applier(t, func(p clienttesting.PatchAction) (runtime.Object, error) {
		switch p.GetName() {
		case "settings":
			return then, nil
		case "s":
			return secret("bmV3"), nil
		}
		return nil, errors.New("refused:\n it is")
	}, is, secret("b2xk"), named("ConfigMap", "refused", "}"))
	c := Component{Applied: []unstructured.Unstructured{
		*object(t, wanted), *secret("bmV3"), *named("ConfigMap", "refused", "}"),
		*named("ConfigMap", "new", "}\ndata: {a: b}"),
	}}
	got := shown(PreviewApply(t.Context(), a, c))
	for _, want := range []string{
		"ConfigMap net/settings\n-  a: \"0\"\n+  a: \"1\"\n", "-  a: <secret>\n+  a: <secret, changed>\n",
		"ConfigMap net/refused\n? ", "refused: it is\n", "ConfigMap net/new\n+apiVersion: v1\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, secret := range []string{"b2xk", "bmV3", "QUJD"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is shown:\n%s", secret, got)
		}
	}
	if len(*writes) > 0 {
		t.Errorf("a diff wrote: %q", *writes)
	}
}

func TestLinesOfObjectsThatOthersApplied(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	check := func(name string) Check {
		return Check{Kind: kind, Namespace: "net", Name: name,
			Differs: func(map[string]any) []string { return []string{"data.a"} }}
	}
	set := check("settings")
	set.Settings = true
	set.Texts = func(o map[string]any) (is, will string) {
		data, _ := o["data"].(map[string]any)
		return "a: " + data["a"].(string), "a: 5"
	}
	missing := set
	missing.Name = "missing"
	a, _ := applier(t, nil, object(t, wanted))
	c := Component{Checks: []Check{check("settings"), check("missing"), set, missing}}
	if got := shown(PreviewSettings(t.Context(), a, c)); got != "ConfigMap net/settings\n-a: 1\n+a: 5\n" {
		t.Error(got)
	}
	const want = "ConfigMap net/settings\n? it differs in data.a; kubeadm will reapply it\n" +
		"ConfigMap net/missing\n? it is missing; kubeadm will create it\n"
	if got := shown(PreviewApply(t.Context(), a, c)); got != want {
		t.Error(got)
	}
}
