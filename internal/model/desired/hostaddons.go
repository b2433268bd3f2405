package desired

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The addons that are timers on hosts, and not objects in the cluster. Each is a configuration of a host under its
// name. Unlike with other configurations, a host without the digest differs if the manifest has the addon.
const (
	EtcdDefragAddon         = "etcd-defrag"
	UnattendedUpgradesAddon = "unattended-upgrades"
)

// HostAddons returns the names of these addons, sorted.
func HostAddons() []string { return []string{EtcdDefragAddon, UnattendedUpgradesAddon} }

// HostAddon is one of them that the manifest has.
type HostAddon struct {
	Name     string   `json:"name"`
	Schedule Calendar `json:"schedule"`
	// Threshold is, for EtcdDefragAddon, the free share of an etcd database in percent from which on it is defragmented.
	Threshold int `json:"threshold,omitempty"`
}

// DefaultHostAddon returns one of HostAddons without parameters.
func DefaultHostAddon(name string) HostAddon {
	if name == EtcdDefragAddon {
		return HostAddon{Name: name, Schedule: Calendar{Minute: 3 * 60}, Threshold: 30}
	}
	return HostAddon{Name: name, Schedule: Calendar{Minute: 6 * 60}}
}

// defragEvery is the time between the timers of two control-plane hosts: more than a host takes to defragment the
// largest database that etcd recommends, 8 GiB.
const defragEvery = 30 * time.Minute

// HostAddonsOf returns the addons that a host is to have. Only control-plane hosts have EtcdDefragAddon, each at its
// own time, in the order of the manifest.
func (c Cluster) HostAddonsOf(h Host) []HostAddon {
	var out []HostAddon
	for _, a := range c.HostAddons {
		if a.Name == EtcdDefragAddon {
			if h.Role != ControlPlane {
				continue
			}
			n := slices.IndexFunc(c.ControlPlane, func(other Host) bool { return other.ID == h.ID })
			a.Schedule = a.Schedule.later(time.Duration(max(n, 0)) * defragEvery)
		}
		out = append(out, a)
	}
	return out
}

// Calendar is a time of day in UTC, on some days of the week.
type Calendar struct {
	Days   []time.Weekday `json:"days,omitempty"` // sorted; empty means every day
	Minute int            `json:"minute"`         // of the day
}

// ParseCalendar parses a part of what systemd's OnCalendar accepts: "03:00" or "Sat,Sun 03:00".
func ParseCalendar(text string) (Calendar, error) {
	const layout = "15:04"
	days, clock, hasDays := strings.Cut(text, " ")
	if !hasDays {
		clock = text
	}
	at, err := time.Parse(layout, clock)
	if err != nil || len(clock) != len(layout) {
		return Calendar{}, fmt.Errorf("%.60q is not a time such as 03:00 or \"Sat,Sun 03:00\"", text)
	}
	c := Calendar{Minute: at.Hour()*60 + at.Minute()}
	if !hasDays {
		return c, nil
	}
	for _, name := range strings.Split(days, ",") {
		day := slices.Index(dayNames(), name)
		if day < 0 {
			return Calendar{}, fmt.Errorf("%.60q is not one of %s", name, strings.Join(dayNames(), ", "))
		}
		if slices.Contains(c.Days, time.Weekday(day)) {
			return Calendar{}, fmt.Errorf("%s is listed twice", name)
		}
		c.Days = append(c.Days, time.Weekday(day))
	}
	slices.Sort(c.Days)
	return c, nil
}

// dayNames returns systemd's names of the days of the week, in the order of time.Weekday.
func dayNames() []string { return []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"} }

// later returns the calendar moved by a duration of whole minutes.
func (c Calendar) later(by time.Duration) Calendar {
	minute := c.Minute + int(by/time.Minute)
	out := Calendar{Minute: minute % (24 * 60)}
	for _, day := range c.Days {
		out.Days = append(out.Days, (day+time.Weekday(minute/(24*60)))%7)
	}
	slices.Sort(out.Days)
	return out
}

// String returns the calendar as systemd's OnCalendar.
func (c Calendar) String() string {
	var days []string
	for _, day := range c.Days {
		days = append(days, dayNames()[day])
	}
	text := fmt.Sprintf("*-*-* %02d:%02d:00 UTC", c.Minute/60, c.Minute%60)
	if len(days) > 0 {
		text = strings.Join(days, ",") + " " + text
	}
	return text
}
