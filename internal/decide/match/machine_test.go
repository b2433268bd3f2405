package match

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

func TestWhoseANodeIsThatHasAMachinesName(t *testing.T) {
	t.Parallel()
	machine := desired.Host{ID: "uid-1", Machine: "kube-system/pool-1", Hostname: "w-1"}
	static := desired.Host{ID: "192.0.2.1", Hostname: "w-1"}
	ours := &observed.Marker{ID: "uid-1", Machine: machine.Machine}
	for name, c := range map[string]struct {
		want   desired.Host
		marker *observed.Marker
		node   observed.Node
		owns   bool
	}{
		"by its label":      {machine, nil, observed.Node{Labels: indexLabel("uid-1")}, true},
		"another Machine's": {machine, ours, observed.Node{Labels: indexLabel("uid-2")}, false},
		"a control plane's": {machine, ours, observed.Node{Labels: indexLabel("uid-1"), ControlPlane: true},
			false},
		"by the host's note":        {machine, ours, observed.Node{}, true},
		"a note of another":         {machine, &observed.Marker{ID: "uid-2"}, observed.Node{}, false},
		"no label or marker":        {machine, nil, observed.Node{}, false},
		"a manifest's, by its name": {static, nil, observed.Node{Labels: indexLabel("uid-1")}, true},
	} {
		if got := OwnsAsMachine(&c.want, &observed.Host{Marker: c.marker}, &c.node); got != c.owns {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func indexLabel(uid string) map[string]string { return map[string]string{desired.OwnerLabel: uid} }
