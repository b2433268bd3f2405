package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kubeone/internal/manifest"
)

// TestRepetitionIsBounded checks limits: a few lines of aliases or merge keys can stand for more than any computer can
// hold.
func TestRepetitionIsBounded(t *testing.T) {
	t.Parallel()
	aliases, merges := "x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n", "x0: &x0 {a: 1}\n"
	for i := 1; i < 20; i++ {
		aliases += fmt.Sprintf("x%d: &x%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*x%d, ", i-1), 10))
		merges += fmt.Sprintf("x%d: &x%d {<<: [%s]}\n", i, i, strings.Repeat(fmt.Sprintf("*x%d, ", i-1), 10))
	}
	for name, lines := range map[string]string{
		"aliases": aliases, "merge keys": merges,
		"depth": "x: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := demo + "dynamicWorkers:\n  - name: w\n    providerSpec:\n      cloudProviderSpec:\n        " +
				strings.ReplaceAll(lines, "\n", "\n        ") + "\n"
			_, err := manifest.Load(t.Context(), manifest.Options{ManifestReader: strings.NewReader(text)})
			problems := (*manifest.Problems)(nil)
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), "contains too many repetitions") ||
				len(problems.List) > 2 {
				t.Errorf("error: %.300v", err)
			}
		})
	}
}

func TestLongTextsAreNotRepeated(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	_, err := manifest.Load(t.Context(),
		manifest.Options{ManifestReader: strings.NewReader(demo + "strictHostKeys: " + long + "\n")})
	if err == nil || strings.Contains(err.Error(), long) {
		t.Errorf("error: %v", err)
	}
}
