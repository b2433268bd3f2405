package componentconfig

import (
	"strings"
	"testing"

	"kubeone/internal/model/desired"
)

// A setting in systemd's configuration applies to every unit that does not override it.
func TestUnitsHaveNoProxiesButTheManifests(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"containerd": containerdUnit, "kubelet": kubeletUnit(desired.Cluster{})} {
		for _, variable := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"} {
			for _, as := range []string{variable, strings.ToLower(variable)} {
				if !strings.Contains(unit, " "+as+"= ") && !strings.Contains(unit, "="+as+"= ") &&
					!strings.Contains(unit, " "+as+"=\n") {
					t.Errorf("%s takes %s from systemd", name, as)
				}
			}
		}
	}
}

func TestProxiesMeanThemselvesInAUnit(t *testing.T) {
	t.Parallel()
	got := proxyDropIn(desired.Proxy{HTTP: `http://me:p%40ss"\@proxy:3128`})
	if want := "[Service]\nEnvironment=\"HTTP_PROXY=http://me:p%%40ss\\\"\\\\@proxy:3128\"\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
