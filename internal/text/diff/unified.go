package diff

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// unifiedLines returns the lines of a unified diff of two texts. It shows the lines of shownLive and shownWill in their
// place, which have no secrets, and marks a secret that becomes another one.
func unifiedLines(live, will string, shownLive, shownWill []string) ([]string, error) {
	d, err := udiff.ToUnifiedDiff("", "", live, udiff.Lines(live, will), around)
	if err != nil {
		return nil, err
	}
	var out []string
	removed := map[string]bool{}
	shift := 0 // how many more lines the other text has before a hunk
	for _, h := range d.Hunks {
		begin := h.FromLine - 1
		from, to := begin, begin+shift
		at := len(out)
		out = append(out, "")
		for _, line := range h.Lines {
			switch line.Kind {
			case udiff.Delete:
				removed[shownLive[from]] = true
				out = append(out, "-"+shownLive[from])
				from++
			case udiff.Insert:
				out = append(out, "+"+shownWill[to])
				to++
			default:
				out = append(out, " "+shownLive[from])
				from, to = from+1, to+1
			}
		}
		out[at] = fmt.Sprintf("@@ -%s +%s @@", writeSpan(begin, from), writeSpan(begin+shift, to))
		shift = to - from
	}
	for i, line := range out {
		if text, added := strings.CutPrefix(line, "+"); added && removed[text] {
			out[i] = strings.ReplaceAll(line, Secret, ChangedSecret)
		}
	}
	return out, nil
}

// writeSpan writes the lines from the first index up to the second one as unified diffs have it: of none, the line
// before them.
func writeSpan(from, to int) string {
	count := to - from
	if count > 0 {
		from++
	}
	return fmt.Sprintf("%d,%d", from, count)
}
