//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
)

// plannedHosts returns the sorted names of the hosts with steps in the current plan.
func (s *scenario) plannedHosts() []string {
	s.Helper()
	p, err := s.Plan(s.Context())
	s.must(err)
	var names []string
	for _, step := range p.Steps {
		if name := p.Hosts[step.Host]; step.Host != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// planIsEmpty returns nil when there is nothing to do.
func (s *scenario) planIsEmpty(ctx context.Context) error {
	if r := s.Run(ctx, "plan"); r.Status != 0 {
		return fmt.Errorf("not yet: %s", r)
	}
	return nil
}
