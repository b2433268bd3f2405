package chart

import (
	"strings"
	"testing"
)

// round goes round: it leads on to the next state, over one, and back.
func round(lanes bool) Chart {
	return Chart{Title: "round", Parts: []Part{{
		Heading: "Round", Start: "begin", Lanes: lanes,
		States: []State{
			{ID: "a", Text: "A", Note: "first"}, {ID: "b", Text: "B <&>"}, {ID: "c", Text: "C", Tone: Wrong},
		},
		Ends: []State{{ID: "end", Text: "End", Tone: Neutral}},
		Transitions: []Transition{
			{"a", "on", "b"}, {"a", "over one", "c"},
			{"c", "back", "b"}, {"c", "out", "end"}, {"c", "astray", "nowhere"},
		},
	}}}
}

func TestWhatIsDrawnLikeAnEnd(t *testing.T) {
	t.Parallel()
	for lanes, want := range map[bool]int{true: 3, false: 4} {
		svg := round(lanes).SVG()
		if got := strings.Count(svg, `rx="16"`); got != want {
			t.Errorf("with lanes %t: %d, want %d", lanes, got, want)
		}
		for _, text := range []string{"Round", "begin", "first", "B &lt;&amp;&gt;", "over one", "nowhere"} {
			if !strings.Contains(svg, text) {
				t.Errorf("with lanes %t: %q is not drawn", lanes, text)
			}
		}
		if painted := strings.Contains(svg, Wrong.paint().fill); painted == lanes {
			t.Errorf("with lanes %t, C is drawn like an end: %t", lanes, painted)
		}
	}
}

func TestLongLabelsHaveRoom(t *testing.T) {
	t.Parallel()
	c := round(false)
	short := c.pillX()
	c.Parts[0].Transitions[3].On = strings.Repeat("long ", 12)
	if long := c.pillX(); short != leastPillX || long < short+100 {
		t.Errorf("ends begin at %d, and beside a long label at %d", short, long)
	}
}

func TestPartsAreGroups(t *testing.T) {
	t.Parallel()
	dot, mermaid := round(true).Dot(), round(true).Mermaid()
	if !strings.Contains(dot, "subgraph \"cluster_Round\" {") || strings.Count(dot, "{") != strings.Count(dot, "}") {
		t.Error(dot)
	}
	if !strings.Contains(mermaid, "    subgraph Round\n") || !strings.Contains(mermaid, "    end\n") {
		t.Error(mermaid)
	}
}
