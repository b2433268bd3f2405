package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kubeone/internal/step"
	"kubeone/test/e2e/load"
	"kubeone/test/e2e/operator"
)

// The upgrade that is measured. Its limit is for the ratio; an empty plan afterwards has a limit of its own.
const (
	upgradeFrom       = "1.35.4"
	upgradeTo         = "1.36.3"
	upgradeRatioLimit = 0.7
	upgradeNoopLimit  = 1.0 // seconds
)

// upgradeResult compares an upgrade by hand with kubeone apply.
type upgradeResult struct {
	From          string        `json:"from"`
	To            string        `json:"to"`
	ControlPlanes int           `json:"controlPlanes"`
	Workers       int           `json:"workers"`
	Pairs         []upgradePair `json:"pairs"`
	// Ratio is the median of the pairs' ratios, RatioAll that of their ratios with the time in which
	// files were brought.
	Ratio    float64 `json:"ratio"`
	RatioAll float64 `json:"ratioWithFiles"`
	// Noop is the median of how long the plan afterwards took, which was empty.
	Noop        float64 `json:"noopSeconds"`
	WithinRatio bool    `json:"withinRatio"`
	WithinNoop  bool    `json:"withinNoop"`
}

// upgradePair is an upgrade by hand, and after it one by kubeone, of clusters of the same shape on the same hosts.
type upgradePair struct {
	ByHand   upgraded `json:"byHand"`
	Kubeone  upgraded `json:"kubeone"`
	Ratio    float64  `json:"ratio"` // kubeone's seconds by those by hand, without the time in which files were brought
	RatioAll float64  `json:"ratioWithFiles"`
}

// upgraded is one upgrade. Stages of kubeone are those of its critical path.
type upgraded struct {
	installation
	// Files is the part in which binaries and images were brought to the hosts, before the first one was touched.
	Files float64 `json:"filesSeconds"`
	// Outside is the part in which no file was brought, kubeadm did not run, and nothing was drained. By hand it is
	// what is left of the stages; of kubeone's critical path it is what the steps that contain kubeadm are not.
	Outside float64 `json:"outsideSeconds"`
	// Work is how long kubeone's steps of each kind took, added up over the hosts; they overlap.
	Work []stage     `json:"work,omitempty"`
	Load load.Report `json:"load"`
}

// changing is the time in which hosts were changed.
func (u upgraded) changing() float64 { return u.Seconds - u.Files }

func (b *bench) measureUpgrade(ctx context.Context) (*upgradeResult, error) {
	result := &upgradeResult{
		From:          upgradeFrom,
		To:            upgradeTo,
		ControlPlanes: b.upgradeShape.controlPlanes,
		Workers:       b.upgradeShape.workers,
	}
	var ratios, all, noops []float64
	for n := range b.repeat {
		pair, err := b.upgradeBoth(ctx)
		if err != nil {
			return nil, err
		}
		took, err := b.emptyPlans(ctx)
		if err != nil {
			return nil, err
		}
		b.log("pair %d of %d: by hand %.1f s, kubeone %.1f s", n+1, b.repeat, pair.ByHand.Seconds, pair.Kubeone.Seconds)
		result.Pairs = append(result.Pairs, pair)
		ratios, all, noops = append(ratios, pair.Ratio), append(all, pair.RatioAll), append(noops, took...)
	}
	result.Ratio, result.RatioAll, result.Noop = median(ratios), median(all), median(noops)
	result.WithinRatio, result.WithinNoop = result.Ratio <= upgradeRatioLimit, result.Noop <= upgradeNoopLimit
	return result, nil
}

func (b *bench) upgradeBoth(ctx context.Context) (p upgradePair, err error) {
	if p.ByHand, err = b.upgradeOnce(ctx, b.installByHand, b.upgradeByHand); err != nil {
		return p, fmt.Errorf("by hand: %w", err)
	}
	if p.Kubeone, err = b.upgradeOnce(ctx, b.installOlder, b.upgradeByKubeone); err != nil {
		return p, fmt.Errorf("kubeone: %w", err)
	}
	b.applied = true
	p.Ratio = p.Kubeone.changing() / p.ByHand.changing()
	p.RatioAll = p.Kubeone.Seconds / p.ByHand.Seconds
	return p, nil
}

// upgradeOnce makes a cluster of the older version on bare hosts, puts a load on it, and measures its upgrade. At the
// end every node must have the newer version, and the load must have come to no harm.
func (b *bench) upgradeOnce(ctx context.Context, install func(context.Context) (installation, error),
	upgrade func(context.Context) (upgraded, error)) (u upgraded, err error) {
	if err := b.bareLabOf(ctx, b.upgradeShape, upgradeFrom); err != nil {
		return u, err
	}
	if _, err := install(ctx); err != nil {
		return u, fmt.Errorf("install Kubernetes %s: %w", upgradeFrom, err)
	}
	under, err := b.startLoad(ctx)
	if err != nil {
		return u, err
	}
	if err = b.lab.Want(ctx, upgradeTo, b.log); err == nil {
		u, err = upgrade(ctx)
	}
	report, stopped := under.Stop(ctx)
	if err = errors.Join(err, stopped); err != nil {
		return u, err
	}
	u.Load = report
	if len(report.Client.Lost) > 0 {
		return u, fmt.Errorf("the load: %w", report.Err())
	}
	return u, b.checkVersions(ctx, upgradeTo)
}

// startLoad puts a load on the lab's cluster, whoever installed it.
func (b *bench) startLoad(ctx context.Context) (*load.Load, error) {
	dir := filepath.Join(b.dir, "operator")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	o, err := operator.New(ctx, b.lab, dir)
	if err != nil {
		return nil, err
	}
	return o.StartLoad(ctx)
}

// installOlder installs with kubeone, unmeasured.
func (b *bench) installOlder(ctx context.Context) (installation, error) {
	a, err := b.apply(ctx, installing)
	return a.installation, err
}

func (b *bench) upgradeByKubeone(ctx context.Context) (upgraded, error) {
	a, err := b.apply(ctx, upgrading)
	return upgraded{
		installation: a.installation,
		Files:        secondsOf(a.Stages, string(step.Fetch)),
		Outside:      a.Outside,
		Work:         a.Work,
	}, err
}

// secondsOf adds up the stages of these names.
func secondsOf(stages []stage, names ...string) float64 {
	var sum float64
	for _, s := range stages {
		if slices.Contains(names, s.Name) {
			sum += s.Seconds
		}
	}
	return sum
}

// emptyPlans times plans of the cluster as it is wanted.
func (b *bench) emptyPlans(ctx context.Context) ([]float64, error) {
	var took []float64
	for range noopRuns {
		start := time.Now()
		if err := b.planNothing(ctx); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start).Seconds())
	}
	return took, nil
}
