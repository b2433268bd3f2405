//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
)

// plannedHosts are the names of the hosts that a plan made now has steps for, sorted.
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

// planIsEmpty holds when there is nothing to do.
func (s *scenario) planIsEmpty(ctx context.Context) error {
	if r := s.Run(ctx, "plan"); r.Status != 0 {
		return fmt.Errorf("not yet: %s", r)
	}
	return nil
}
