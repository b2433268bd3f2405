package pattern_test

import (
	"testing"

	"kubeone/internal/pattern"
)

func TestAPatternIsCompiledOnceAndByItsFirstUse(t *testing.T) {
	t.Parallel()
	digits := pattern.Lazy(`^[0-9]{1,3}$`)
	if !digits().MatchString("123") || digits().MatchString("1234") || digits() != digits() {
		t.Error("the pattern is not what its text says, or another each time")
	}
	wrong := pattern.Lazy(`(`) // nobody has used it yet
	defer func() {
		if recover() == nil {
			t.Error("a text that is no pattern was compiled")
		}
	}()
	wrong()
}
