package diff

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// unifiedLines returns a unified diff of two texts. It shows the lines of shownLive and shownWill instead, which have
// no secrets, and marks secrets that change.
func unifiedLines(live, will string, shownLive, shownWill []string) ([]string, error) {
	d, err := udiff.ToUnifiedDiff("", "", live, udiff.Lines(live, will), around)
	if err != nil {
		return nil, err
	}
	var out []string
	removed := map[string]bool{}
	shift := 0 // line offset of the other text before a hunk
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

// writeSpan writes a range of lines in unified format: for an empty range, the line before it.
func writeSpan(from, to int) string {
	count := to - from
	if count > 0 {
		from++
	}
	return fmt.Sprintf("%d,%d", from, count)
}
