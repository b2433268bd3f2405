// Package diff returns the lines that differ between live and planned contents, for the approval of a plan. It is pure.
// Its results have no secrets and no terminal control characters, and are limited in size.
package diff

import (
	"fmt"
	"regexp"
	"strings"

	"kubeone/internal/host"
	"kubeone/internal/text/phrase"
	"kubeone/internal/text/redact"
)

// Set is the changes on hosts that all have the same ones, or in the cluster.
type Set struct {
	Hosts   []string `json:"hosts,omitempty"` // their names; empty for objects of the cluster
	Changes []Change `json:"changes"`
}

// Change is the difference in one file, in the flags of one program, or in one object.
type Change struct {
	Of string `json:"of"` // "/etc/crictl.yaml", "flags of kube-apiserver", "ConfigMap kube-system/kube-proxy"
	// Lines are a unified diff: "@@ -1,3 +1,3 @@", then lines that begin with a blank, with - if they are live, and
	// with + if they are planned.
	Lines   []string `json:"lines,omitempty"`
	Unknown string   `json:"unknown,omitempty"` // a description, if there are no lines
}

// Limits of a change.
const (
	mostLines   = 200
	longestLine = 300     // bytes
	mostText    = 1 << 20 // bytes of a text that is compared
	around      = 2       // lines of context
)

// Secret replaces a secret, and ChangedSecret a secret that changes.
const (
	Secret        = "<secret>"
	ChangedSecret = "<secret, changed>"
)

// Of compares two texts and reports whether they differ.
func Of(of, live, will string) (Change, bool) {
	live, will = strings.TrimRight(live, "\n"), strings.TrimRight(will, "\n")
	c := Change{Of: cleanText(of)}
	if live == will {
		return c, false
	}
	if len(live)+len(will) > mostText {
		c.Unknown = "it is too long to compare"
		return c, true
	}
	shownLive, shownWill := maskLines(live), maskLines(will)
	if len(shownLive) != len(splitLines(live)) || len(shownWill) != len(splitLines(will)) {
		c.Unknown = "it contains a private key and is not shown"
		return c, true
	}
	differing, err := unifiedLines(withFinalNewline(live), withFinalNewline(will), shownLive, shownWill)
	if err != nil {
		c.Unknown = "it cannot be compared: " + err.Error()
		return c, true
	}
	c.Lines = boundLines(differing)
	return c, true
}

// Summary returns a change that is described by a sentence, because its lines are unknown or must not be shown.
func Summary(of, text string) Change { return Change{Of: cleanText(of), Unknown: cleanText(text)} }

// credentials matches a user and password in base64 in the configuration of a registry.
var credentials = regexp.MustCompile(`(?mi)^(\s*"?auth"?\s*[:=]\s*).+$`)

// maskLines returns the lines of a text without secrets. A private key becomes fewer lines.
func maskLines(text string) []string {
	var known redact.Redactor
	text = credentials.ReplaceAllString(known.Text(text), "${1}"+redact.Removed)
	return splitLines(strings.ReplaceAll(text, redact.Removed, Secret))
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// withFinalNewline adds a final newline if it is missing.
func withFinalNewline(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}

// boundLines returns the lines to show, limited and cleaned.
func boundLines(all []string) []string {
	out := make([]string, 0, min(len(all), mostLines+1))
	for i, line := range all {
		if i == mostLines {
			out = append(out, fmt.Sprintf("@@ and %d more lines @@", len(all)-i))
			break
		}
		out = append(out, cleanText(phrase.Shorten(line, longestLine)))
	}
	return out
}

// cleanText removes characters that move a cursor or begin a line.
func cleanText(text string) string {
	return strings.NewReplacer("\n", " ", "\t", "    ").Replace(host.Printable(text))
}
