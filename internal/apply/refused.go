package apply

import (
	"errors"
	"strings"

	"kubeone/internal/host"
	"kubeone/internal/plan/step"
)

// exitSettingsRefused is the exit status of the step Reconfigure if it had to restore the previous settings.
const exitSettingsRefused = 65

// SettingsRefused reports whether a run failed because a component did not start with new settings and its host
// restored the previous ones. It also returns the reason, in one line.
func SettingsRefused(err error) (why string, refused bool) {
	var failed *StepError
	var exit *host.ExitError
	if !errors.As(err, &failed) || failed.Step.Intent.Kind != step.Reconfigure ||
		!errors.As(failed.Err, &exit) || exit.Code != exitSettingsRefused {
		return "", false
	}
	lines := append(strings.Split(string(exit.Stderr), "\n"), failed.Tail...)
	why = "a component did not start"
	for _, line := range lines {
		if said, ok := strings.CutPrefix(strings.TrimSpace(line), "error: "); ok {
			why = said
		}
	}
	return strings.Map(dropControlCharacters, why), true
}

// dropControlCharacters drops what would move a terminal's cursor or break a line.
func dropControlCharacters(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}
