package decide

import (
	"testing"

	"kubeone/internal/decide/fsm"
)

func TestOptionsThatApplyOnce(t *testing.T) {
	t.Parallel()
	all := Options{ForceUpgrade: true, RotateKey: true, UpgradeMachines: true, DropNames: true, DiscardEdits: true}
	forced, rotated, both := all, all, all
	forced.ForceUpgrade, rotated.RotateKey = false, false
	both.ForceUpgrade, both.RotateKey = false, false
	for name, c := range map[string]struct {
		routes []fsm.Route
		want   Options
	}{
		"no route":    {nil, all},
		"a repair":    {[]fsm.Route{fsm.Repair}, all},
		"install":     {[]fsm.Route{fsm.Install}, both},
		"upgrade":     {[]fsm.Route{fsm.Upgrade}, forced},
		"encrypt":     {[]fsm.Route{fsm.Encrypt}, rotated},
		"both of all": {[]fsm.Route{fsm.Encrypt, fsm.Repair, fsm.Upgrade}, both},
	} {
		if got := all.After(c.routes...); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
