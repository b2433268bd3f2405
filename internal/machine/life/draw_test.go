package life

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/golden"
)

func TestDrawingInDocsIsCurrent(t *testing.T) {
	t.Parallel()
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "machines.svg"), Chart().SVG())
}

// What is below a state's name has room in its box, and everything is drawn in each language.
func TestTheDrawingShowsTheWholeTable(t *testing.T) {
	t.Parallel()
	const room = 56 // letters of the small size
	svg, dot, mermaid := Chart().SVG(), Chart().Dot(), Chart().Mermaid()
	for _, k := range Kinds() {
		for _, s := range k.States {
			if len(s.Means) > room {
				t.Errorf("%s %s: the box has no room for %q", k.Name, s.State, s.Means)
			}
			if !strings.Contains(svg, ">"+html.EscapeString(s.Means)+"<") {
				t.Errorf("%s %s is not drawn", k.Name, s.State)
			}
		}
		for _, tr := range k.Transitions {
			if !strings.Contains(svg, html.EscapeString(tr.On)) {
				t.Errorf("SVG: %s: %+v is not drawn", k.Name, tr)
			}
			from, to := k.node(tr.From), k.node(tr.To)
			if !strings.Contains(dot, `"`+from+`" -> "`+to+`" [label="`+tr.On+`"]`) {
				t.Errorf("Dot: %s: %+v is not drawn", k.Name, tr)
			}
			if !strings.Contains(mermaid, from+" -->|"+tr.On+"| "+to+"\n") {
				t.Errorf("Mermaid: %s: %+v is not drawn", k.Name, tr)
			}
		}
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
