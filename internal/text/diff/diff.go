// Package diff says which lines differ between what is live and what will be, for people who decide whether it may. It
// is pure. What it returns holds no secrets, is cleaned of what moves a terminal's cursor, and has its bounds, wherever
// the texts come from.
package diff

import (
	"fmt"
	"regexp"
	"strings"

	"kubeone/internal/host"
	"kubeone/internal/text/phrase"
	"kubeone/internal/text/redact"
)

// Set is what changes on hosts where the same changes, or in the cluster.
type Set struct {
	Hosts   []string `json:"hosts,omitempty"` // their names; none: the cluster's objects
	Changes []Change `json:"changes"`
}

// Change is what changes in one file, in the flags of one program, or in one object.
type Change struct {
	Of string `json:"of"` // "/etc/crictl.yaml", "flags of kube-apiserver", "ConfigMap kube-system/kube-proxy"
	// Lines are those of a unified diff: "@@ -1,3 +1,3 @@", then lines that begin with a blank, with - where they are
	// live, and with + where they will be.
	Lines   []string `json:"lines,omitempty"`
	Unknown string   `json:"unknown,omitempty"` // why the lines are not known
}

// Bounds of a change.
const (
	mostLines   = 200
	longestLine = 300     // bytes
	mostText    = 1 << 20 // bytes of a text that is compared
	around      = 2       // lines that are shown before and after those that differ
)

// Secret stands where a secret is, and ChangedSecret where there will be another one.
const (
	Secret        = "<secret>"
	ChangedSecret = "<secret, changed>"
)

// Of compares two texts, and reports whether they differ.
func Of(of, live, will string) (Change, bool) {
	live, will = strings.TrimRight(live, "\n"), strings.TrimRight(will, "\n")
	c := Change{Of: cleanText(of)}
	if live == will {
		return c, false
	}
	if len(live)+len(will) > mostText {
		c.Unknown = "it is too long to be compared"
		return c, true
	}
	shownLive, shownWill := maskLines(live), maskLines(will)
	if len(shownLive) != len(splitLines(live)) || len(shownWill) != len(splitLines(will)) {
		c.Unknown = "it holds a private key, and is not shown"
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

// Unknown is a change of which no line is known.
func Unknown(of, why string) Change { return Change{Of: cleanText(of), Unknown: cleanText(why)} }

// credentials are what a registry's configuration says in one word: user and password, in base64.
var credentials = regexp.MustCompile(`(?mi)^(\s*"?auth"?\s*[:=]\s*).+$`)

// maskLines are a text's lines without secrets. Of a private key they are fewer.
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

// withFinalNewline returns a text whose last line ends.
func withFinalNewline(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}

// boundLines are lines as far as they are shown, cleaned.
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

// cleanText is a text without what moves a cursor or begins a line.
func cleanText(text string) string {
	return strings.NewReplacer("\n", " ", "\t", "    ").Replace(host.Printed(text))
}
