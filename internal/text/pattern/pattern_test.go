package pattern_test

import (
	"testing"

	"kubeone/internal/text/pattern"
)

func TestAPatternIsCompiledOnceAndByItsFirstUse(t *testing.T) {
	t.Parallel()
	digits := pattern.Lazy(`^[0-9]{1,3}$`)
	first := digits()
	if !first.MatchString("123") || first.MatchString("1234") {
		t.Error("the pattern is not what its text says")
	}
	if digits() != first {
		t.Error("the second use compiled the pattern again")
	}
	wrong := pattern.Lazy(`(`) // not compiled yet
	defer func() {
		if recover() == nil {
			t.Error("a text that is no pattern was compiled")
		}
	}()
	wrong()
}
