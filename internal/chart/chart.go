// Package chart draws state machines: as SVG, in Graphviz' language, and as a Mermaid flowchart. What is drawn are
// values; whoever has a table of states and transitions makes a Chart of it.
package chart

// Chart is one drawing.
type Chart struct {
	Title string
	Parts []Part // state machines of their own, drawn below each other
}

// Part is one state machine.
type Part struct {
	Heading string // "" in a chart that has one part
	Start   string // what leads to the first state, said beside a dot; "" draws none
	States  []State
	Ends    []State // drawn wherever one is reached, so that no lines cross
	// Transitions are in order. One that leads to the next state is an arrow downwards.
	Transitions []Transition
	// Lanes draws transitions to states further down as lines beside them. Without it they are drawn like ends, which
	// transitions to states further up always are.
	Lanes bool
}

// State is a state, or an end.
type State struct {
	ID   string // by which transitions name it, and its name in Dot and Mermaid; unique in the chart
	Text string
	Note string // below the text, in small letters
	Tone Tone   // of an end, or where it is drawn like one
}

// Transition is an arrow.
type Transition struct{ From, On, To string }

// Tone is what a state means to whoever looks after the cluster.
type Tone int

// The tones.
const (
	Busy      Tone = iota // something is done, blue
	Fine                  // nothing is wrong, green
	Attention             // a person or time must act, amber
	Wrong                 // nothing may be done, red
	Neutral               // it is not there, grey
)

// paint is the colours of a tone.
type paint struct{ fill, line, text string }

func (t Tone) paint() paint {
	switch t {
	case Fine:
		return paint{"#dcfce7", "#16a34a", "#14532d"}
	case Attention:
		return paint{"#fef3c7", "#d97706", "#78350f"}
	case Wrong:
		return paint{"#fee2e2", "#dc2626", "#7f1d1d"}
	case Neutral:
		return paint{"#f1f5f9", "#64748b", "#334155"}
	default:
		return paint{"#dbeafe", "#2563eb", "#1e3a8a"}
	}
}

// row is the place of a state among those that are drawn below each other; all others come after.
func (p Part) row(id string) int {
	for i := range p.States {
		if p.States[i].ID == id {
			return i
		}
	}
	return len(p.States)
}

// state is the state or end of that name.
func (p Part) state(id string) State {
	for _, all := range [][]State{p.States, p.Ends} {
		for _, s := range all {
			if s.ID == id {
				return s
			}
		}
	}
	return State{ID: id, Text: id}
}
