package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRender(t *testing.T) {
	t.Parallel()
	const text = "# a comment\n---\nkind: A\ncount: 3\ntext: {{quote .Text}}\n---\n---\nkind: B\n"
	for _, value := range []string{"", "plain", "two\nlines\n", `"quoted" & <tagged>: {{x}}`, "---\n", "1.36", "yes"} {
		got, err := Render(text, struct{ Text string }{value})
		if err != nil {
			t.Fatal(err)
		}
		want := []Object{{"kind": "A", "count": float64(3), "text": value}, {"kind": "B"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q:\n%s", value, diff)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"{{.Text":               "template",
		"a: {{.Missing}}":       "Missing",
		"a: 1\n---\na: [":       "document 2",
		"a: 1\na: 2\n":          "already set",
		"a: {{quote .Missing}}": "Missing",
	} {
		if _, err := Render(text, map[string]string{"Text": "x"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error that says %q", text, err, says)
		}
	}
}

func TestWorkloadsAreNamedAsKubectlDoes(t *testing.T) {
	t.Parallel()
	if got := (Workload{"DaemonSet", "kube-system", "kube-proxy"}).String(); got != "kube-system/DaemonSet/kube-proxy" {
		t.Error(got)
	}
}
