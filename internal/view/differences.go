package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"kubeone/internal/manifest/compare"
	"kubeone/internal/text/phrase"
)

// Differences prints in which fields the desired states of two clusters differ. hidden is the number of differences in
// hosts and the provider that are not shown.
func Differences(out io.Writer, found []compare.Difference, names []string, hidden int) {
	if len(found) > 0 {
		_, _ = fmt.Fprintf(out, "- %s\n+ %s\n\n", names[0], names[1])
	}
	for _, d := range found {
		_, _ = fmt.Fprintf(out, "%s\n", d.Path)
		writeSide(out, "-", d.A)
		writeSide(out, "+", d.B)
	}
	if len(found) == 0 {
		_, _ = fmt.Fprintln(out, "No differences.")
	}
	if hidden > 0 {
		_, _ = fmt.Fprintf(out, "\n%s in hosts, names and the provider not shown: see --all.\n",
			phrase.Count(hidden, "difference"))
	}
}

// writeSide writes a value on one line; nothing if the field is not set.
func writeSide(out io.Writer, sign string, value any) {
	if value == nil {
		return
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err == nil {
		_, _ = fmt.Fprintf(out, "  %s %s", sign, text.Bytes())
	}
}
