package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Settings says whether a machine's host has the settings that are wanted.
type Settings int

// What is known of a host's settings.
const (
	SettingsUnknown Settings = iota // nobody has looked since these are wanted
	SettingsDiffer
	SettingsCurrent
)

// Member is a machine that is a Node, and whose host is to have the settings of all.
type Member struct {
	Name     string // namespace/name
	Settings Settings
	Ready    bool // its Node is
	// Turn says that it has been given its turn, and that what its host does with that has not ended.
	Turn bool
	// Changing says that its versions are being changed: it is out of service for that.
	Changing bool
	// Moving says that its deployment is about to change or to replace it, and it gets the settings with that.
	Moving bool
	// Paused says that nobody looks after it.
	Paused bool
	// Overdue says that it has been out of service for so long that the others do not wait for it any longer.
	Overdue bool
	// Refused is why its host has taken the wanted settings back; "" where it has not.
	Refused string
}

// Limits say how many hosts may be out of service for their settings.
type Limits struct {
	AtOnce func(total int) int // of so many; nil is one
	Canary bool                // one first, alone: it must be Ready with the settings before the others get them
}

// Turns say whose turn it is to get other settings.
type Turns struct {
	// Next are those that may begin now, Begun those that have been given their turn.
	Next, Begun []string
	// Held says why the others that have other settings may not yet; "" where there are none.
	Held string
	// Stopped says why no other host gets the settings at all; "" while they go on.
	Stopped string
}

// leastFailed is how many hosts must fail with the settings until no other gets them. One alone may be broken, or lie.
const leastFailed = 2

// NextSettings says whose turn it is. It is asked again after each change, and everything that it goes by is in the
// members: what is out of service counts, whatever the reason, as long as it is not overdue.
//
// A host has failed if it has refused the settings, or was given them and is overdue. It gets no second turn, and the
// others go on, one at a time, until one of them is Ready with the settings. They stop once two hosts have failed, and
// these are half of those that were given the settings.
func NextSettings(members []Member, l Limits) Turns {
	byName := func(a, b Member) int { return strings.Compare(a.Name, b.Name) }
	c := countMembers(slices.SortedFunc(slices.Values(members), byName))
	t := Turns{Begun: c.begun}
	if len(c.failed) >= leastFailed && len(c.failed) >= c.current {
		t.Stopped = fmt.Sprintf("the hosts of %s have failed with them; %s", joinNames(c.failed), c.why)
		t.Held = t.Stopped
		return t
	}
	atOnce := 1
	if l.AtOnce != nil && (c.proven || !l.Canary && len(c.failed) == 0) {
		atOnce = max(1, l.AtOnce(len(members)))
	}
	t.Next = c.wait[:min(len(c.wait), max(0, atOnce-len(c.out)))]
	if len(t.Next) < len(c.wait) {
		t.Held = "waits for " + cmp.Or(joinNames(c.out), "Machine "+strings.Join(t.Next, ", "))
	}
	return t
}

// counted are members by what they are to a roll-out of settings. One may be several of these.
type counted struct {
	begun, wait, failed []string
	out                 []string // of service, with the reason
	why                 string   // the first of those that failed has
	current             int      // how many have the settings, and have not failed
	proven              bool     // one of these is Ready
}

func countMembers(members []Member) counted {
	var c counted
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

// failureText says how the member's host has failed with the settings; "" where it has not.
func (m Member) failureText() string {
	switch {
	case m.Refused != "":
		return m.Refused
	case m.Overdue && (m.Turn || m.Settings == SettingsCurrent):
		return "was given them, and is " + m.OutOfService()
	}
	return ""
}

// OutOfService says why the member counts among those that may be out of service; "" where it does not.
func (m Member) OutOfService() string {
	switch {
	case m.Turn && m.Overdue:
		return "not done with them"
	case m.Turn:
		return "being given them"
	case m.Changing:
		return "being changed"
	case !m.Ready:
		return "not Ready"
	case m.Settings == SettingsUnknown && !m.Paused:
		return "not looked at yet"
	}
	return ""
}

// mostNamed is how many machines a sentence names.
const mostNamed = 5

func joinNames(out []string) string {
	if len(out) == 0 {
		return ""
	}
	text := "Machine " + strings.Join(out[:min(len(out), mostNamed)], ", ")
	if more := len(out) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
