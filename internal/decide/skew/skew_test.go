package skew

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ apiserver, kubelet, want string }{
		{"1.36.3", "1.36.3", ""},
		{"1.36.3", "1.36.9", ""},
		{"1.36.3", "1.33.0", ""},
		{"1.36.3", "1.32.9", "kubelet 1.32.9 is more than 3 minors older than API server 1.36.3"},
		{"1.36.3", "1.37.0", "kubelet 1.37.0 is newer than API server 1.36.3"},
		{"1.36.3", "2.36.3", "kubelet 2.36.3 and API server 1.36.3 differ in the major version"},
		{"x", "1.36.3", `API server's version "x": could not parse "x" as version`},
		{"1.36.3", "", `kubelet's version "": could not parse "" as version`},
	} {
		got := ""
		if err := Check(tt.apiserver, tt.kubelet); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("API server %s, kubelet %s: %q, want %q", tt.apiserver, tt.kubelet, got, tt.want)
		}
	}
}

func TestUpgradePath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		want     []string
		err      string
	}{
		{"1.36.3", "1.36.3", nil, ""},
		{"1.36.3", "1.36.4", []string{"1.36.4"}, ""},
		{"1.35.9", "1.36.3", []string{"1.36.3"}, ""},
		{"1.33.0", "1.36.3", []string{"1.34", "1.35", "1.36.3"}, ""},
		{"1.36.3", "1.36.2", nil, "1.36.2 is lower than 1.36.3: Kubernetes cannot be downgraded"},
		{"1.36.3", "2.0.0", nil, "1.36.3 and 2.0.0 differ in the major version"},
		{"?", "2.0.0", nil, `running version "?": could not parse "?" as version`},
		{"1.36.3", "?", nil, `desired version "?": could not parse "?" as version`},
	} {
		got, err := UpgradePath(tt.from, tt.to)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || text != tt.err {
			t.Errorf("from %s to %s: %v, %q (-want +got):\n%s", tt.from, tt.to, got, text, diff)
		}
	}
}
