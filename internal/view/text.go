package view

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kubeone/internal/model/problem"
)

// clean makes a text from elsewhere harmless for a terminal: one line, without escape sequences, other control
// characters, or characters that change the direction of writing.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, escape.ReplaceAllString(text, ""))
}

// escape matches the escape sequences that programs use for colours, cursor movements and titles.
var escape = regexp.MustCompile(`\x1b(\[[0-9;:?<=>]*[\x20-\x2f]*[\x40-\x7e]|\][^\x07\x1b]*(\x07|\x1b\\)?|[\x40-\x5f])`)

// width is how many columns a text takes, escape sequences not counted.
func width(text string) int { return utf8.RuneCountInString(escape.ReplaceAllString(text, "")) }

// pad fills a text with blanks up to n columns.
func pad(text string, n int) string {
	if missing := n - width(text); missing > 0 {
		return text + strings.Repeat(" ", missing)
	}
	return text
}

// right fills a text with blanks on its left up to n columns.
func right(text string, n int) string {
	if missing := n - width(text); missing > 0 {
		return strings.Repeat(" ", missing) + text
	}
	return text
}

// clip cuts a text without escape sequences to n columns.
func (s Style) clip(text string, n int) string {
	if width(text) <= n {
		return text
	}
	runes, end := []rune(text), s.ellipsis()
	if keep := n - width(end); keep > 0 {
		return string(runes[:keep]) + end
	}
	return string(runes[:max(n, 0)])
}

// wrap breaks a text between words into lines of at most n columns; 0 does not break. A longer word has its own line.
func wrap(text string, n int) []string {
	if n <= 0 || width(text) <= n {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= n:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// list writes names as a sentence has them, and only the first most of them.
func list(names []string, most int) string { return problem.List(problem.Some(names, most)) }

// took writes how long something took, as short as its reader needs it: "4.1s", "3m12s", "1h05m".
func took(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 100*time.Second-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour-500*time.Millisecond:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// whole is took in full seconds, for times that count while somebody looks on.
func whole(d time.Duration) string {
	if d = max(d, 0); d < 100*time.Second {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return took(d)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Days is how many full days are left until a moment; negative when it is past.
func Days(from, to time.Time) int {
	d := to.Sub(from)
	if d < 0 {
		return -int(-d/(24*time.Hour)) - 1
	}
	return int(d / (24 * time.Hour))
}

// at is a sentence about a host: its name stands before it, unless the sentence begins with it.
func at(name, sentence string) string {
	if name == "" || strings.HasPrefix(sentence, name+":") || strings.HasPrefix(sentence, name+" ") {
		return sentence
	}
	return name + ": " + sentence
}

// nameOf is a host's display name, else its ID.
func nameOf(names map[string]string, id string) string {
	if name := names[id]; name != "" {
		return name
	}
	return id
}
