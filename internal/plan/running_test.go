package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
)

// What does not run is what the cluster is otherwise in than it must be, where nothing is to be done; a plan that waits
// for components only notes it.
func TestWhatDoesNotRunIsAnException(t *testing.T) {
	t.Parallel()
	in := healthyCluster(3, 1)
	in.Is.API.Pods = slices.DeleteFunc(in.Is.API.Pods, func(p observed.Pod) bool {
		return p.App == "kube-dns" || p.App == "kube-proxy" && p.Node == "w-1"
	})
	p, _ := Build(Input{Decide: in})
	want := []string{"kube-proxy (not running on w-1)", "cluster DNS (not running on any Node)"}
	if diff := cmp.Diff(want, p.Exceptions()); diff != "" || !p.Empty() {
		t.Errorf("(-want +got):\n%s%s", diff, planText(p))
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "cluster DNS is not running on any Node; ") {
		t.Errorf("notes: %q", notes)
	}
	in.Is.API.Addons = map[string]string{"flannel": "another", "metrics-server": "addon-2"}
	p, _ = Build(Input{Decide: in})
	if _, waits := p.Step("await-workloads"); !waits || len(p.Exceptions()) > 0 || len(p.Notes) != 2 {
		t.Errorf("a plan that waits for them:\n%s", planText(p))
	}
}
