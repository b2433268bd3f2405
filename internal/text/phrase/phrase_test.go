package phrase_test

import (
	"testing"

	"kubeone/internal/text/phrase"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "no hosts", 1: "1 host", 2: "2 hosts"} {
		if got := phrase.Count(n, "host"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":                    {"abcdef", 6, "abcdef"},
		"long":                     {"abcdefg", 6, "abc..."},
		"cut in a character":       {"abücdef", 6, "ab..."},
		"short, and no valid text": {"a\xffb", 6, "ab"},
		"nothing":                  {"", 3, ""},
		"the ellipsis alone":       {"abcd", 3, "..."},
	} {
		if got := phrase.Shorten(c.text, c.limit); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
