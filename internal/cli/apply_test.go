package cli

import (
	"errors"
	"slices"
	"testing"

	"kubeone/internal/decide"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
)

// install and upgrade refuse every other route before they change anything.
func TestCommandsFollowTheirRoutesAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		as      variant
		follows []fsm.Route
	}{
		{applyVariant, fsm.Cluster.Routes()},
		{installVariant, []fsm.Route{fsm.Install, fsm.Nothing}},
		{upgradeVariant, []fsm.Route{fsm.Upgrade, fsm.Nothing}},
	} {
		for _, route := range fsm.Cluster.Routes() {
			if route == fsm.Error {
				continue // refused by all, as what it is
			}
			p := engine.Proposal{
				Request:   engine.Apply{Routes: c.as.routes},
				Decisions: []decide.Decision{{Route: route}},
			}
			err := p.Refusal()
			var config *engine.ConfigError
			if follows := slices.Contains(c.follows, route); follows && err != nil ||
				!follows && !errors.As(err, &config) {
				t.Errorf("%s: the route %s: %v", c.as.use, route, err)
			}
		}
	}
}
