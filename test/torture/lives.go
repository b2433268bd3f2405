package main

import (
	"context"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// The versions of the upgrade.
const (
	older = "1.36.1"
	newer = "1.36.3"
)

// tortureUpgrade kills a patch upgrade at every step boundary. Each climb starts with bare hosts.
func (s settings) tortureUpgrade(ctx context.Context) error {
	return s.climbOnLab(ctx, "upgrade", older, 1, func(ctx context.Context, o *operator.Operator, first bool) error {
		if !first {
			if err := makeBare(ctx, o); err != nil {
				return err
			}
		}
		if err := runSuccessfully(ctx, o, "apply", "-y"); err != nil {
			return err
		}
		return o.Want(ctx, newer)
	})
}

// makeBare replaces all hosts and selects the older version.
func makeBare(ctx context.Context, o *operator.Operator) error {
	if err := o.Want(ctx, older); err != nil {
		return err
	}
	for _, host := range o.Members() {
		if err := o.Lab.Rebuild(ctx, host); err != nil {
			return err
		}
	}
	return o.WriteManifest()
}

// tortureRepair kills the replacement of a control-plane host at every step boundary. Each climb starts with an empty
// host in its place.
func (s settings) tortureRepair(ctx context.Context) error {
	return s.climbOnLab(ctx, "repair", newer, 1, func(ctx context.Context, o *operator.Operator, first bool) error {
		if first {
			if err := runSuccessfully(ctx, o, "apply", "-y"); err != nil {
				return err
			}
		}
		if err := o.Lab.Rebuild(ctx, o.Lab.Host("cp-2")); err != nil {
			return err
		}
		return o.WriteManifest()
	})
}

// climbOnLab brings up a lab of three control-plane hosts and climbs until no boundary of the suite is left. begin
// learns whether the lab is new.
func (s settings) climbOnLab(ctx context.Context, suite, version string, workers int,
	begin func(ctx context.Context, o *operator.Operator, first bool) error) error {
	path, err := s.stateFile(suite)
	if err != nil {
		return err
	}
	known, err := readBoundaries(path)
	if err != nil {
		return err
	}
	if len(known.Known) > 0 && len(known.listLeft()) == 0 {
		printLine("all %d boundaries have passed (%s); -again forgets them", len(known.Known), path)
		return nil
	}
	o, end, err := onLab(ctx, fleet.Options{ControlPlanes: 3, Workers: workers, KubernetesVersion: version})
	if err != nil {
		return err
	}
	defer end()
	first := true
	c := &climb{Operator: o, boundaries: known, kills: s.kills, begin: func(ctx context.Context) error {
		defer func() { first = false }()
		return begin(ctx, o, first)
	}}
	return c.climbAll(ctx)
}
