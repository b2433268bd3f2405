package life

import (
	"slices"

	"kubeone/internal/chart"
)

// Chart is all kinds, to be drawn.
func Chart() chart.Chart {
	c := chart.Chart{Title: "How the objects of the Machine API come to be and go"}
	for _, k := range Kinds() {
		c.Parts = append(c.Parts, k.part())
	}
	return c
}

// part is the table of one kind as it is drawn. What is meant by Any is a state that is drawn before those which it
// does not mean.
func (k Kind) part() chart.Part {
	p := chart.Part{
		Heading: k.Name,
		States:  []chart.State{{ID: k.node(None), Text: "no " + k.Name}},
		Ends:    []chart.State{{ID: k.node(Gone), Text: string(Gone), Tone: chart.Neutral}},
	}
	add := func(leaving bool) {
		for _, s := range k.States {
			if slices.Contains(k.Leaving, s.State) == leaving {
				p.States = append(p.States,
					chart.State{ID: k.node(s.State), Text: string(s.State), Note: s.Means, Tone: s.Tone})
			}
		}
	}
	add(false)
	if slices.ContainsFunc(k.Transitions, func(t Transition) bool { return t.From == Any }) {
		p.States = append(p.States, chart.State{ID: k.node(Any), Text: "any of these"})
	}
	add(true)
	for _, t := range k.Transitions {
		p.Transitions = append(p.Transitions, chart.Transition{From: k.node(t.From), On: t.On, To: k.node(t.To)})
	}
	return p
}

// node is a state's name in a drawing.
func (k Kind) node(s State) string { return k.Name + "_" + string(s) }
