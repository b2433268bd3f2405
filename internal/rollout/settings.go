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
	// Refused is who has refused the settings, the first by name: nobody else gets them. "" is nobody.
	Refused string
}

// NextSettings says whose turn it is. It is asked again after each change, and everything that it goes by is in the
// members: what is out of service counts, whatever the reason.
func NextSettings(members []Member, l Limits) Turns {
	byName := func(a, b Member) int { return strings.Compare(a.Name, b.Name) }
	members = slices.SortedFunc(slices.Values(members), byName)
	for _, m := range members {
		if m.Refused != "" {
			held := fmt.Sprintf("the host of Machine %s has refused them: %s", m.Name, m.Refused)
			return Turns{Refused: m.Name, Held: held}
		}
	}
	var wait, out, begun []string
	tried := !l.Canary
	for _, m := range members {
		tried = tried || m.Settings == SettingsCurrent && m.Ready && !m.Turn
		if m.Turn {
			begun = append(begun, m.Name)
		}
		if why := m.outOfService(); why != "" {
			out = append(out, m.Name+" ("+why+")")
		} else if m.Settings == SettingsDiffer && !m.Moving && !m.Paused {
			wait = append(wait, m.Name)
		}
	}
	atOnce := 1
	if l.AtOnce != nil && tried {
		atOnce = max(1, l.AtOnce(len(members)))
	}
	t := Turns{Begun: begun}
	t.Next = wait[:min(len(wait), max(0, atOnce-len(out)))]
	if len(t.Next) < len(wait) {
		t.Held = "waits for " + cmp.Or(named(out), "Machine "+strings.Join(t.Next, ", "))
	}
	return t
}

// outOfService says why the member counts among those that may be out of service; "" where it does not.
func (m Member) outOfService() string {
	switch {
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

func named(out []string) string {
	if len(out) == 0 {
		return ""
	}
	text := "Machine " + strings.Join(out[:min(len(out), mostNamed)], ", ")
	if more := len(out) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
