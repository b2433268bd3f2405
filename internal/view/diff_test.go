package view

import (
	"bytes"
	"testing"

	"kubeone/internal/text/diff"
)

func TestDiffAsText(t *testing.T) {
	t.Parallel()
	hostile := []diff.Set{{
		Hosts: []string{"w-1\x1b[2J"},
		Changes: []diff.Change{
			{Of: "/etc/x\r", Lines: []string{"@@ -0,0 +1,1 @@", "+\x1b]0;owned\x07a\u202eb"}},
			{Of: "y", Unknown: "\x1b[31mred"},
		},
	}}
	for name, c := range map[string]struct {
		style Style
		sets  []diff.Set
	}{
		"pipe": {inPipe, documentedDiffs()}, "narrow": {narrow, documentedDiffs()}, "none": {inPipe, nil},
		"hostile": {inPipe, hostile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render(func(b *bytes.Buffer) { Diff(b, c.style, c.sets) })
			if name != "narrow" { // its lines are not broken
				mustBePlain(t, c.style, got)
			}
			pinned(t, "diff-"+name+".txt", got)
		})
	}
	colour := render(func(b *bytes.Buffer) { Diff(b, inColour, documentedDiffs()) })
	plain := render(func(b *bytes.Buffer) { Diff(b, onTerminal, documentedDiffs()) })
	if colour == plain || escapeSequence.ReplaceAllString(colour, "") != plain {
		t.Errorf("plain:\n%s\ncolour:\n%q", plain, colour)
	}
}
