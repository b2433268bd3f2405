package decide

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// rules is the compiled decision list of testdata/routes.txt. It knows only the facts that the test counts, and nothing
// of this package.
type rules struct {
	names []string // of slots: the raw facts first, then those of "let"
	lets  []term
	list  []rule
}

type rule struct {
	line  int
	route string
	holds term
}

// term is computed from the slots.
type term func(slots []int) int

// readRules compiles the file. Raw facts have the slots of their position in names.
func readRules(t *testing.T, path string, names []string) *rules {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &rules{names: append([]string(nil), names...)}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if err := r.addRule(i+1, strings.Fields(line)); err != nil {
			t.Fatalf("%s:%d: %v", path, i+1, err)
		}
	}
	return r
}

func (r *rules) addRule(line int, words []string) error {
	switch {
	case len(words) == 0:
		return nil
	case len(words) > 3 && words[0] == "let" && words[2] == "=":
		f, err := r.parseOr(words[3:])
		r.lets, r.names = append(r.lets, f), append(r.names, words[1])
		return err
	case len(words) > 2 && words[1] == "if":
		f, err := r.parseOr(words[2:])
		r.list = append(r.list, rule{line, words[0], f})
		return err
	}
	return fmt.Errorf("cannot read %q", words)
}

// or, and, compare and sum are the levels of an expression, weakest first.
func (r *rules) parseOr(words []string) (term, error) {
	return r.parseJoined(words, "or", r.parseAnd, func(a, b int) int { return max(a, b) })
}

func (r *rules) parseAnd(words []string) (term, error) {
	return r.parseJoined(words, "and", r.parseCompare, func(a, b int) int { return min(a, b) })
}

func (r *rules) parseCompare(words []string) (term, error) {
	for i, w := range words {
		var f func(a, b int) int
		switch w {
		case "=":
			f = func(a, b int) int { return boolValue(a == b) }
		case ">":
			f = func(a, b int) int { return boolValue(a > b) }
		case ">=":
			f = func(a, b int) int { return boolValue(a >= b) }
		default:
			continue
		}
		return bothTrue(f)(r.parseSum(words[:i]))(r.parseSum(words[i+1:]))
	}
	return r.parseSum(words)
}

func (r *rules) parseSum(words []string) (term, error) {
	return r.parseJoined(words, "+", r.parseDifference, func(a, b int) int { return a + b })
}

func (r *rules) parseDifference(words []string) (term, error) {
	return r.parseJoined(words, "-", r.parseWord, func(a, b int) int { return a - b })
}

// parseJoined splits the words at every separator and combines the parts from the left.
func (r *rules) parseJoined(words []string, sep string, part func([]string) (term, error),
	combine func(a, b int) int) (term, error) {
	for i := len(words) - 1; i >= 0; i-- {
		if words[i] == sep {
			left, err := r.parseJoined(words[:i], sep, part, combine)
			if err != nil {
				return nil, err
			}
			return bothTrue(combine)(left, nil)(part(words[i+1:]))
		}
	}
	return part(words)
}

func bothTrue(f func(a, b int) int) func(term, error) func(term, error) (term, error) {
	return func(a term, err error) func(term, error) (term, error) {
		return func(b term, err2 error) (term, error) {
			if err != nil || err2 != nil {
				return nil, fmt.Errorf("%w%w", err, err2)
			}
			return func(s []int) int { return f(a(s), b(s)) }, nil
		}
	}
}

func (r *rules) parseWord(words []string) (term, error) {
	if len(words) == 2 && words[0] == "half" { // more than half of so many
		f, err := r.parseWord(words[1:])
		return func(s []int) int { return (f(s) + 2) / 2 }, err
	}
	if len(words) != 1 {
		return nil, fmt.Errorf("cannot read %q", words)
	}
	if n, err := strconv.Atoi(words[0]); err == nil {
		return func([]int) int { return n }, nil
	}
	for i, name := range r.names {
		if name == words[0] {
			return func(s []int) int { return s[i] }, nil
		}
	}
	return nil, fmt.Errorf("no fact %q", words[0])
}

func boolValue(b bool) int {
	if b {
		return 1
	}
	return 0
}

// matchRoute returns the route of the first rule that holds, and its line.
func (r *rules) matchRoute(raw []int, slots []int) (string, int) {
	copy(slots, raw)
	for i, f := range r.lets {
		slots[len(raw)+i] = f(slots)
	}
	for _, rule := range r.list {
		if rule.holds(slots) > 0 {
			return rule.route, rule.line
		}
	}
	return "", 0
}
