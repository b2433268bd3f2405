package decide

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// rules is the decision list of testdata/routes.txt, compiled for speed. It knows nothing of this package but the facts
// that the test counts.
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

// term is worked out from the slots.
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
		if err := r.add(i+1, strings.Fields(line)); err != nil {
			t.Fatalf("%s:%d: %v", path, i+1, err)
		}
	}
	return r
}

func (r *rules) add(line int, words []string) error {
	switch {
	case len(words) == 0:
		return nil
	case len(words) > 3 && words[0] == "let" && words[2] == "=":
		f, err := r.or(words[3:])
		r.lets, r.names = append(r.lets, f), append(r.names, words[1])
		return err
	case len(words) > 2 && words[1] == "if":
		f, err := r.or(words[2:])
		r.list = append(r.list, rule{line, words[0], f})
		return err
	}
	return fmt.Errorf("cannot read %q", words)
}

// or, and, compare and sum are the levels of an expression, weakest first.
func (r *rules) or(words []string) (term, error) {
	return r.join(words, "or", r.and, func(a, b int) int { return max(a, b) })
}

func (r *rules) and(words []string) (term, error) {
	return r.join(words, "and", r.compare, func(a, b int) int { return min(a, b) })
}

func (r *rules) compare(words []string) (term, error) {
	for i, w := range words {
		var f func(a, b int) int
		switch w {
		case "=":
			f = func(a, b int) int { return truth(a == b) }
		case ">":
			f = func(a, b int) int { return truth(a > b) }
		case ">=":
			f = func(a, b int) int { return truth(a >= b) }
		default:
			continue
		}
		return both(f)(r.sum(words[:i]))(r.sum(words[i+1:]))
	}
	return r.sum(words)
}

func (r *rules) sum(words []string) (term, error) {
	return r.join(words, "+", r.difference, func(a, b int) int { return a + b })
}

func (r *rules) difference(words []string) (term, error) {
	return r.join(words, "-", r.word, func(a, b int) int { return a - b })
}

// join splits the words at every separator and combines the parts from the left.
func (r *rules) join(words []string, sep string, part func([]string) (term, error),
	combine func(a, b int) int) (term, error) {
	for i := len(words) - 1; i >= 0; i-- {
		if words[i] == sep {
			left, err := r.join(words[:i], sep, part, combine)
			if err != nil {
				return nil, err
			}
			return both(combine)(left, nil)(part(words[i+1:]))
		}
	}
	return part(words)
}

func both(f func(a, b int) int) func(term, error) func(term, error) (term, error) {
	return func(a term, err error) func(term, error) (term, error) {
		return func(b term, err2 error) (term, error) {
			if err != nil || err2 != nil {
				return nil, fmt.Errorf("%w%w", err, err2)
			}
			return func(s []int) int { return f(a(s), b(s)) }, nil
		}
	}
}

func (r *rules) word(words []string) (term, error) {
	if len(words) == 2 && words[0] == "half" { // more than half of so many
		f, err := r.word(words[1:])
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

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// route returns the route of the first rule that holds, and its line.
func (r *rules) route(raw []int, slots []int) (string, int) {
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
