package fsm

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/golden"
)

func TestDrawingsInDocsAreCurrent(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "..", "docs")
	golden.Check(t, filepath.Join(docs, "fsm.svg"), SVG())
	golden.Check(t, filepath.Join(docs, "fsm.mmd"), Mermaid())
}

func TestSVGIsWellFormed(t *testing.T) {
	t.Parallel()
	d := xml.NewDecoder(strings.NewReader(SVG()))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryDrawingShowsEveryTransition(t *testing.T) {
	t.Parallel()
	dot, mermaid, svg := Dot(), Mermaid(), SVG()
	for _, tr := range Table() {
		if want := `"` + node(tr.From) + `" -> "` + node(tr.To) + `" [label="` + string(tr.On) +
			`"]`; !strings.Contains(dot, want) {
			t.Errorf("Dot lacks %s", want)
		}
		if want := node(tr.From) + " -->|" + string(tr.On) + "| " + node(tr.To) + "\n"; !strings.Contains(mermaid,
			want) {
			t.Errorf("Mermaid lacks %s", want)
		}
		if !strings.Contains(svg, string(tr.On)) {
			t.Errorf("SVG lacks %s", tr.On)
		}
	}
	exits := 0
	for _, tr := range Table() {
		if isRoute(tr.To) {
			exits++
		}
	}
	if got := strings.Count(svg, `rx="16"`); got != exits {
		t.Errorf("SVG draws %d exit states, the table has %d transitions to them", got, exits)
	}
}
