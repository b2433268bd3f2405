package apply

import (
	"maps"
	"slices"
	"time"

	"kubeone/internal/cluster/drain"
	"kubeone/internal/cluster/record"
)

// Progress is how far a run is that is carried out by passes. Its caller keeps it from one pass to the next, also
// over a restart; it is plain data, without secrets. The zero value begins a run. What a caller could not keep is
// found again: a step on a host by the run's ID and its own, and one through the API is looked at again.
type Progress struct {
	Entry    record.Run             `json:"entry"`              // as in the cluster's history, with its steps
	Drains   map[string]drain.State `json:"drains,omitempty"`   // of Nodes that are being drained, by step ID
	Silences map[string]Silence     `json:"silences,omitempty"` // of what is to be found dead, by step ID
	Printed  map[string]int         `json:"printed,omitempty"`  // lines of its output that were told, by step ID
	Tokens   []string               `json:"tokens,omitempty"`   // IDs of the run's join tokens; they are no secret
	Failures []string               `json:"failures,omitempty"` // what went wrong so far
	Over     bool                   `json:"over,omitempty"`     // nothing is left to do, or can be done
}

// Silence is since when something was found dead by one look after the other, and when last.
type Silence struct {
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
}

// Found is the silence after a look that began and ended then, and found no life. It begins anew after a gap, also of a
// clock that was set back. The zero value is that of what nobody has looked at.
func (s Silence) Found(began, ended time.Time) Silence {
	if !s.lasts(began) {
		s.Since = ended.Round(0)
	}
	s.Last = ended.Round(0)
	return s
}

// lasts reports whether a look at that moment would go on with the silence.
func (s Silence) lasts(at time.Time) bool {
	gap := at.Round(0).Sub(s.Last)
	return !s.Last.IsZero() && gap >= 0 && gap <= DeathGap
}

// Dead reports whether the silence has lasted for long enough.
func (s Silence) Dead() bool { return !s.Last.IsZero() && s.Last.Sub(s.Since) >= DeathWithin }

// State is how far a step is.
func (p Progress) State(id string) State {
	for _, s := range p.Entry.Steps {
		if s.ID == id {
			return stateOf(s.Result)
		}
	}
	return Waiting
}

func stateOf(r record.Result) State {
	switch r {
	case record.Done:
		return Done
	case record.Failed:
		return Failed
	case record.Skipped:
		return Skipped
	}
	return Running
}

// clone is a Progress that shares nothing with p.
func (p Progress) clone() Progress {
	p.Entry.Steps = slices.Clone(p.Entry.Steps)
	p.Drains, p.Silences, p.Printed = maps.Clone(p.Drains), maps.Clone(p.Silences), maps.Clone(p.Printed)
	p.Tokens, p.Failures = slices.Clone(p.Tokens), slices.Clone(p.Failures)
	if p.Drains == nil {
		p.Drains = map[string]drain.State{}
	}
	if p.Silences == nil {
		p.Silences = map[string]Silence{}
	}
	if p.Printed == nil {
		p.Printed = map[string]int{}
	}
	return p
}
