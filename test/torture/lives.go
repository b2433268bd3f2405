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

// upgrade kills a patch upgrade at every step boundary. Each climb starts with bare hosts.
func (s settings) upgrade(ctx context.Context) error {
	return s.climb(ctx, "upgrade", older, 1, func(ctx context.Context, o *operator.Operator, first bool) error {
		if !first {
			if err := bare(ctx, o); err != nil {
				return err
			}
		}
		if err := succeeds(ctx, o, "apply", "-y"); err != nil {
			return err
		}
		return o.Want(ctx, newer)
	})
}

// bare replaces all hosts and selects the older version.
func bare(ctx context.Context, o *operator.Operator) error {
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

// repair kills the replacement of a control-plane host at every step boundary. Each climb starts with an empty host in
// its place.
func (s settings) repair(ctx context.Context) error {
	return s.climb(ctx, "repair", newer, 1, func(ctx context.Context, o *operator.Operator, first bool) error {
		if first {
			if err := succeeds(ctx, o, "apply", "-y"); err != nil {
				return err
			}
		}
		if err := o.Lab.Rebuild(ctx, o.Lab.Host("cp-2")); err != nil {
			return err
		}
		return o.WriteManifest()
	})
}

// climb brings up a lab of three control-plane hosts and climbs until no boundary of the suite is left. begin learns
// whether the lab is new.
func (s settings) climb(ctx context.Context, suite, version string, workers int,
	begin func(ctx context.Context, o *operator.Operator, first bool) error) error {
	path, err := s.file(suite)
	if err != nil {
		return err
	}
	known, err := readBoundaries(path)
	if err != nil {
		return err
	}
	if len(known.Known) > 0 && len(known.left()) == 0 {
		say("all %d boundaries have passed (%s); -again forgets them", len(known.Known), path)
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
	return c.all(ctx)
}
