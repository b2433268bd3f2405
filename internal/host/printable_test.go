package host

import (
	"strings"
	"testing"
)

func TestOnlyWhatIsPrintedStays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		"größer\tals\n":                 "größer\tals\n",
		"\x1b]0;owned\a\x1b[2Ja\rb":     "]0;owned[2Jab",
		"\u202egnp\u2066\u200b\ufeff":   "gnp",
		"\x00\x7f\u009b\xff\xfe\ufffd!": "!",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestAnErrorSaysWhatACommandPrintedAndNoMore(t *testing.T) {
	t.Parallel()
	err := &ExitError{Host: "w-1", Code: 1, Stderr: []byte("\x1b[2Jno\r space\nleft\x00\n")}
	if got := err.Error(); !strings.HasSuffix(got, "exit status 1: [2Jno space\nleft") {
		t.Errorf("%q", got)
	}
}
