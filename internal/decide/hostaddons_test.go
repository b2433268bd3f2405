package decide

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// A timer is installed, changed, started and removed as the manifest says, whether the host has noted it or not.
func TestATimerOfAnAddonIsDrift(t *testing.T) {
	t.Parallel()
	const name = desired.EtcdDefragAddon
	for what, c := range map[string]struct {
		noted, want string
		stopped     bool
		drifts      bool
	}{
		"neither":             {"", "", false, false},
		"it is there":         {"same", "same", false, false},
		"it is missing":       {"", "same", false, true},
		"it differs":          {"other", "same", false, true},
		"it is to go":         {"same", "", false, true},
		"it was stopped":      {"same", "same", true, true},
		"stopped, and to go":  {"same", "", true, true},
		"stopped and unknown": {"", "", true, false},
	} {
		in := healthyCluster(3, 1)
		id := in.Want.ControlPlane[1].ID
		in.Config[id] = maps.Clone(in.Config[id])
		if c.want != "" {
			in.Config[id][name] = c.want
		}
		in.changeObserved(id, func(h *observed.Host) {
			h.Digests = maps.Clone(h.Digests)
			if c.noted != "" {
				h.Digests[name] = c.noted
			}
			if c.stopped {
				h.StoppedTimers = []string{name}
			}
		})
		d := Decide(in)
		var want map[string][]string
		if c.drifts {
			want = map[string][]string{id: {name}}
		}
		if diff := cmp.Diff(want, d.Drift); diff != "" || (d.Route == fsm.Reconfigure) != c.drifts {
			t.Errorf("%s: %s %s", what, d.Route, diff)
		}
	}
}

// A system without a program for upgrades is refused. A worker that claims to have one stops no other host.
func TestUnattendedUpgradesNeedAProgram(t *testing.T) {
	t.Parallel()
	for system, refused := range map[string]bool{
		"debian": false, "ubuntu": false, "rocky": false, "flatcar": true, "sles": true,
	} {
		in := healthyCluster(3, 2)
		in.Want.HostAddons = []desired.HostAddon{desired.DefaultHostAddon(desired.UnattendedUpgradesAddon)}
		worker, cp := in.Want.Workers[0].ID, in.Want.ControlPlane[2].ID
		in.changeObserved(worker, func(h *observed.Host) { h.OS.ID = system })
		d := Decide(in)
		is := d.Hosts[worker]
		left := is.Condition == condition.Unclear && len(is.Reasons) == 1 &&
			is.Reasons[0].String() == "UpgraderUnknown(os="+system+")"
		if left != refused || d.Route == fsm.Error {
			t.Errorf("%s on a worker: %s %s %v", system, d.Route, is.Condition, is.Reasons)
		}
		in.changeObserved(cp, func(h *observed.Host) { h.OS.ID = system })
		d = Decide(in)
		texts := problemTexts(d.Problems)
		if slices.Contains(texts, "UpgraderUnknown(os="+system+")") != refused || (d.Route == fsm.Error) != refused {
			t.Errorf("%s on a control-plane host: %s %v", system, d.Route, texts)
		}
	}
}
