package apply

import (
	"errors"
	"fmt"
	"testing"

	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

func TestOnlyWhatWasTakenBackIsRefused(t *testing.T) {
	t.Parallel()
	failing := func(i step.Intent, code int, stderr string, tail ...string) error {
		return fmt.Errorf("the run: %w", &StepError{
			Step: plan.Step{Intent: i}, Host: "w-1", Tail: tail,
			Err: &host.ExitError{Host: "w-1", Code: code, Stderr: []byte(stderr)},
		})
	}
	reconfigure := step.With(step.ReconfigureParams{})
	for name, c := range map[string]struct {
		err     error
		why     string
		refused bool
	}{
		"none":           {nil, "", false},
		"another error":  {errors.New("silent"), "", false},
		"another status": {failing(reconfigure, 1, "error: less than 64 MiB are free"), "", false},
		"another step":   {failing(step.With(step.UpgradeWorkerParams{}), exitSettingsRefused, "error: x"), "", false},
		"refused": {
			failing(reconfigure, exitSettingsRefused, "error: the kubelet does not start\n"),
			"the kubelet does not start", true,
		},
		"said by its tail": {
			failing(reconfigure, exitSettingsRefused, "", "taking back", "error: first", "error: last\x1b[2J", "x"),
			"last[2J", true,
		},
		"without a word": {failing(reconfigure, exitSettingsRefused, ""), "a component did not start", true},
	} {
		if why, refused := SettingsRefused(c.err); why != c.why || refused != c.refused {
			t.Errorf("%s: %q, %v", name, why, refused)
		}
	}
}
