package script

import (
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/plan/step"
)

// hooksFunction returns the shell function hooks_of, which runs the hooks planned for a moment and fails if there are
// none.
func hooksFunction(steps []step.Intent) string {
	var b strings.Builder
	b.WriteString("hooks_of() {\n\tcase $1 in\n")
	for _, s := range steps {
		if s.Kind != step.Hooks {
			continue
		}
		fmt.Fprintf(&b, "\t%s)\n", s.Moment())
		for _, h := range step.ParamsOf[step.HooksParams](s).Hooks {
			fmt.Fprintf(&b, "\t\thook %s %d", Quote(h.Name), h.TimeoutSeconds)
			for _, word := range h.Command {
				b.WriteString(" " + Quote(word))
			}
			b.WriteString("\n")
		}
		b.WriteString("\t\t;;\n")
	}
	b.WriteString("\t*) die \"no hooks $1 are planned for this host\" ;;\n\tesac\n}\n")
	return b.String()
}

// pendingHooks returns the stages before which the host records pending hooks of an activity, as "STAGE:ACTIVITY".
func pendingHooks(steps []step.Intent) []string {
	var out []string
	for kind, activity := range step.PendingHooks(steps) {
		out = append(out, string(kind)+":"+string(activity))
	}
	slices.Sort(out)
	return out
}
