package step

import (
	"strings"
	"testing"
)

func TestAListIsReadAsItWasMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		variable Variable
		want     string // "!" is an error
	}{
		"a text is not split":             {Text("X", "a b\nc\x00"), "a b\nc\x00"},
		"no words":                        {Words("X"), ""},
		"words":                           {Words("X", "a", "ä=1", "/c"), "a ä=1 /c"},
		"no lines":                        {Lines("X", nil), ""},
		"lines":                           {Lines("X", [][]string{{"a", "b"}, {"c", "d"}}), "a b\nc d"},
		"last words that are not known":   {Lines("X", [][]string{{"a", "", ""}}), "a  "},
		"a word that would be another's":  {Lines("X", [][]string{{"a", "", "c"}}), "!"},
		"an empty word in front":          {Words("X", "", "b"), "!"},
		"two words for one":               {Words("X", "a b"), "!"},
		"two lines for one":               {Lines("X", [][]string{{"a", "b\nc d"}}), "!"},
		"a tab":                           {Words("X", "a\tb"), "!"},
		"a control character of C1":       {Words("X", "a\u0085b"), "!"},
		"a blank that no line may end in": {Words("X", "a "), "!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.variable.Value()
			if c.want == "!" {
				if err == nil || !strings.Contains(err.Error(), " in X") {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
