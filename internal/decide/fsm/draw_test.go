package fsm

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

func TestDrawingsInDocsAreCurrent(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "..", "docs")
	golden.Check(t, filepath.Join(docs, "fsm.svg"), Cluster.Chart().SVG())
	golden.Check(t, filepath.Join(docs, "fsm.mmd"), Cluster.Chart().Mermaid())
	golden.Check(t, filepath.Join(docs, "fsm-worker.svg"), Worker.Chart().SVG())
}

func TestSVGIsWellFormed(t *testing.T) {
	t.Parallel()
	for _, m := range []Machine{Cluster, Worker} {
		d := xml.NewDecoder(strings.NewReader(m.Chart().SVG()))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestEveryDrawingShowsEveryTransition(t *testing.T) {
	t.Parallel()
	for _, m := range []Machine{Cluster, Worker} {
		c := m.Chart()
		dot, mermaid, svg, exits := c.Dot(), c.Mermaid(), c.SVG(), 0
		for _, tr := range m.Table() {
			if want := `"` + m.node(tr.From) + `" -> "` + m.node(tr.To) + `" [label="` + string(tr.On) +
				`"]`; !strings.Contains(dot, want) {
				t.Errorf("Dot lacks %s", want)
			}
			if want := m.node(tr.From) + " -->|" + string(tr.On) + "| " + m.node(tr.To) +
				"\n"; !strings.Contains(mermaid, want) {
				t.Errorf("Mermaid lacks %s", want)
			}
			if !strings.Contains(svg, html.EscapeString(string(tr.On))) {
				t.Errorf("SVG lacks %s", tr.On)
			}
			if isRoute(m.Routes(), tr.To) {
				exits++
			}
		}
		if got := strings.Count(svg, `rx="16"`); got != exits {
			t.Errorf("SVG draws %d exit states, the table has %d transitions to them", got, exits)
		}
	}
}
