package desired_test

import (
	"slices"
	"testing"

	"kubeone/internal/model/desired"
)

// Hosts defragment one after the other, also across midnight and the end of a week.
func TestEachMemberHasItsOwnTimeForDefragmentation(t *testing.T) {
	t.Parallel()
	for schedule, want := range map[string][]string{
		"03:00":         {"*-*-* 03:00:00 UTC", "*-*-* 03:30:00 UTC", "*-*-* 04:00:00 UTC"},
		"23:15":         {"*-*-* 23:15:00 UTC", "*-*-* 23:45:00 UTC", "*-*-* 00:15:00 UTC"},
		"Wed,Sat 23:15": {"Wed,Sat *-*-* 23:15:00 UTC", "Wed,Sat *-*-* 23:45:00 UTC", "Sun,Thu *-*-* 00:15:00 UTC"},
	} {
		at, err := desired.ParseCalendar(schedule)
		if err != nil {
			t.Fatal(err)
		}
		c := desired.Cluster{
			ControlPlane: []desired.Host{{ID: "a"}, {ID: "b"}, {ID: "c"}},
			HostAddons: []desired.HostAddon{
				{Name: desired.EtcdDefragAddon, Schedule: at}, {Name: desired.UnattendedUpgradesAddon, Schedule: at},
			},
		}
		var got []string
		for _, h := range c.ControlPlane {
			h.Role = desired.ControlPlane
			addons := c.HostAddonsOf(h)
			if len(addons) != 2 || addons[1].Schedule.String() != want[0] {
				t.Errorf("%s: %+v", h.ID, addons)
			}
			got = append(got, addons[0].Schedule.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", schedule, got, want)
		}
		workers := c.HostAddonsOf(desired.Host{ID: "w", Role: desired.Worker})
		if len(workers) != 1 || workers[0].Name != desired.UnattendedUpgradesAddon {
			t.Errorf("a worker has %+v", workers)
		}
	}
}
