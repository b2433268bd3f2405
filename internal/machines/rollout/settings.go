package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Settings says whether a machine's host has the desired settings.
type Settings int

// States of a host's settings.
const (
	SettingsUnknown Settings = iota // not checked since the desired settings changed
	SettingsDiffer
	SettingsCurrent
)

// Member is a machine with a Node whose host follows the common settings.
type Member struct {
	Name     string // namespace/name
	Settings Settings
	Ready    bool // its Node is Ready
	// Turn says that the machine has its turn, and its host has not finished.
	Turn bool
	// Changing says that its versions are being changed, so it is out of service.
	Changing bool
	// Moving says that its deployment is about to change or replace it. This also applies the settings.
	Moving bool
	// Paused says that its reconciliation is paused.
	Paused bool
	// Overdue says that it has been out of service for so long that others no longer wait for it.
	Overdue bool
	// Refused is why its host reverted the desired settings; "" if it did not.
	Refused string
}

// Limits defines how many hosts may be out of service while settings are applied.
type Limits struct {
	AtOnce func(total int) int // returns how many of total hosts; nil means one
	Canary bool                // one host must be Ready with the new settings before the others follow
}

// Turns contains the members that may apply new settings now.
type Turns struct {
	// Next contains the members that may start now. Begun contains those that have started.
	Next, Begun []string
	// Held says why the other members that need new settings must wait; "" if there are none.
	Held string
	// Stopped says why no other host may apply the settings; "" if the rollout has not stopped.
	Stopped string
}

// minFailed is how many hosts must fail before the rollout stops. A single host may be broken or report wrong results.
const minFailed = 2

// NextSettings returns which members may apply new settings now. It depends only on its arguments and is called again
// after each change. Every member that is out of service counts, whatever the reason, unless it is overdue.
//
// A host has failed if it refused the settings, or if it is overdue after applying them. It does not get a second turn.
// The others continue one at a time until one is Ready with the settings. The rollout stops once at least two hosts,
// and at least half of the hosts that applied the settings, have failed.
func NextSettings(members []Member, l Limits) Turns {
	byName := func(a, b Member) int { return strings.Compare(a.Name, b.Name) }
	c := groupMembers(slices.SortedFunc(slices.Values(members), byName))
	t := Turns{Begun: c.begun}
	if len(c.failed) >= minFailed && len(c.failed) >= c.current {
		t.Stopped = fmt.Sprintf("the settings have failed on the hosts of %s; %s", joinNames(c.failed), c.why)
		t.Held = t.Stopped
		return t
	}
	atOnce := 1
	if l.AtOnce != nil && (c.proven || !l.Canary && len(c.failed) == 0) {
		atOnce = max(1, l.AtOnce(len(members)))
	}
	t.Next = c.wait[:min(len(c.wait), max(0, atOnce-len(c.out)))]
	if len(t.Next) < len(c.wait) {
		t.Held = "waiting for " + cmp.Or(joinNames(c.out), "Machine "+strings.Join(t.Next, ", "))
	}
	return t
}

// memberGroups groups members by their state. A member can be in several groups.
type memberGroups struct {
	begun, wait, failed []string
	out                 []string // out of service, with the reason
	why                 string   // the first failure
	current             int      // members with the settings that have not failed
	proven              bool     // one of these is Ready
}

func groupMembers(members []Member) memberGroups {
	var c memberGroups
	for _, m := range members {
		if m.Turn {
			c.begun = append(c.begun, m.Name)
		}
		failure, why := m.failureText(), m.OutOfService()
		switch {
		case failure != "":
			c.failed, c.why = append(c.failed, m.Name), cmp.Or(c.why, m.Name+": "+failure)
		case m.Settings == SettingsCurrent && !m.Turn:
			c.current++
			c.proven = c.proven || m.Ready
		}
		switch {
		case why != "" && !m.Overdue:
			c.out = append(c.out, m.Name+" ("+why+")")
		case why == "" && m.Settings == SettingsDiffer && !m.Moving && !m.Paused && m.Refused == "":
			c.wait = append(c.wait, m.Name)
		}
	}
	return c
}

// failureText says how the member's host failed with the settings; "" if it did not.
func (m Member) failureText() string {
	switch {
	case m.Refused != "":
		return m.Refused
	case m.Overdue && (m.Turn || m.Settings == SettingsCurrent):
		return "out of service with the settings: " + m.OutOfService()
	}
	return ""
}

// OutOfService says why the member is out of service; "" if it is not.
func (m Member) OutOfService() string {
	switch {
	case m.Turn && m.Overdue:
		return "still applying them"
	case m.Turn:
		return "applying settings"
	case m.Changing:
		return "changing versions"
	case !m.Ready:
		return "not Ready"
	case m.Settings == SettingsUnknown && !m.Paused:
		return "not checked yet"
	}
	return ""
}

// mostNamed limits the machines that a message names.
const maxNamed = 5

func joinNames(out []string) string {
	if len(out) == 0 {
		return ""
	}
	text := "Machine " + strings.Join(out[:min(len(out), maxNamed)], ", ")
	if more := len(out) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
