package step

import (
	"fmt"
	"strings"
)

// Variable is a shell variable of a host's script: a text, or a list that stages split into lines and words. A list has
// a value only if splitting it gives back its words.
type Variable struct {
	Name  string
	text  string
	lines [][]string // of a list
}

// Text returns a variable that no stage splits.
func Text(name, text string) Variable { return Variable{Name: name, text: text} }

// Words returns a list of one line, which stages split into words.
func Words(name string, words ...string) Variable { return Lines(name, [][]string{words}) }

// Lines returns a list that stages read line by line. Each line has its words in a fixed order; only the last ones may
// be empty.
func Lines(name string, lines [][]string) Variable { return Variable{Name: name, lines: lines} }

// Value returns the variable's value. The error names a word that a stage would split or lose: one with a blank or a
// control character, or an empty one before others.
func (v Variable) Value() (string, error) {
	if v.lines == nil {
		return v.text, nil
	}
	lines := make([]string, 0, len(v.lines))
	for _, words := range v.lines {
		for i, word := range words {
			if strings.ContainsFunc(word, isSeparator) || word == "" && strings.Join(words[i:], "") != "" {
				return "", fmt.Errorf("%q is not a valid word in %s: it is empty, or contains a blank or a control character",
					word, v.Name)
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "\n"), nil
}

// isSeparator reports whether the character cannot be in a word: blanks, line ends and other control characters.
func isSeparator(r rune) bool { return r <= ' ' || r >= 0x7f && r <= 0xa0 }
