package main

import (
	"bytes"
	"context"
	"fmt"
)

// installation is one installation by hand, with its stages.
type installation struct {
	cost
	Stages []stage `json:"stages"`
}

// stage is a part of an installation.
type stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// installResult compares installing by hand with kubeone apply.
type installResult struct {
	ControlPlanes int       `json:"controlPlanes"`
	Workers       int       `json:"workers"`
	Pairs         []pairing `json:"pairs"`
	// Ratio is the median of the pairs' ratios.
	Ratio float64 `json:"ratio"`
}

// pairing is an installation by hand followed by one with kubeone, on equal hosts.
type pairing struct {
	ByHand  installation `json:"byHand"`
	Kubeone cost         `json:"kubeone"`
	Ratio   float64      `json:"ratio"` // kubeone's seconds by those by hand
}

func (b *bench) measureInstall(ctx context.Context) (*installResult, error) {
	result := &installResult{ControlPlanes: b.controlPlanes, Workers: b.workers}
	var ratios []float64
	for n := range b.repeat {
		pair, err := b.installBoth(ctx)
		if err != nil {
			return nil, err
		}
		pair.Ratio = pair.Kubeone.Seconds / pair.ByHand.Seconds
		b.log("pair %d of %d: by hand %.1f s, kubeone %.1f s", n+1, b.repeat, pair.ByHand.Seconds, pair.Kubeone.Seconds)
		result.Pairs = append(result.Pairs, pair)
		ratios = append(ratios, pair.Ratio)
	}
	result.Ratio = medianOf(ratios)
	return result, nil
}

func (b *bench) installBoth(ctx context.Context) (p pairing, err error) {
	if err := b.bareLab(ctx); err != nil {
		return p, err
	}
	if p.ByHand, err = b.installByHand(ctx); err != nil {
		return p, fmt.Errorf("by hand: %w", err)
	}
	if err := b.bareLab(ctx); err != nil {
		return p, err
	}
	if p.Kubeone, err = b.measureApply(ctx); err != nil {
		return p, fmt.Errorf("kubeone: %w", err)
	}
	b.applied = true
	return p, nil
}

// measureApply runs kubeone apply on the bare lab and measures it.
func (b *bench) measureApply(ctx context.Context) (cost, error) {
	if err := settleDisks(b.lab.Bundle); err != nil {
		return cost{}, err
	}
	b.log("installing with kubeone")
	return b.applyManifest(ctx)
}

// applyManifest runs kubeone apply for the lab's manifest and measures it.
func (b *bench) applyManifest(ctx context.Context) (cost, error) {
	cmd := b.productCommand(ctx, "apply", "-m", b.lab.Path("kubeone.yaml"), "--bundle", b.lab.Bundle, "--auto-approve")
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	took, err := measureCost(cmd.Run)
	if err != nil {
		return took, withLastLines(err, printed.String())
	}
	return took, nil
}
