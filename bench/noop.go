package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

const noopRuns = 10

// noopResult measures "kubeone plan" on a cluster that matches its manifest.
type noopResult struct {
	Seconds      float64 `json:"seconds"` // the median of 10 runs
	Fastest      float64 `json:"fastestSeconds"`
	Slowest      float64 `json:"slowestSeconds"`
	Connections  int     `json:"connectionsAHost"`
	Commands     int     `json:"commandsAHost"`
	APIRequests  int     `json:"apiRequests"`
	EtcdRequests int     `json:"etcdRequests"`
	Addons       int     `json:"addons"`
	Releases     int     `json:"releases"`
	Within       bool    `json:"within"` // one connection and one command a host
}

func (b *bench) measureNoop(ctx context.Context) (*noopResult, error) {
	if !b.applied {
		if err := b.bareLab(ctx); err != nil {
			return nil, err
		}
		if _, err := b.measureApply(ctx); err != nil {
			return nil, err
		}
		b.applied = true
	}
	if err := b.addObjects(ctx); err != nil {
		return nil, err
	}
	var took []float64
	for range noopRuns {
		start := time.Now()
		if err := b.planNothing(ctx); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start).Seconds())
	}
	l, err := lookAt(ctx, b.lab.Path("kubeone.yaml"), filepath.Join(b.dir, "state"))
	if err != nil {
		return nil, err
	}
	return &noopResult{
		Seconds: medianOf(took), Fastest: slices.Min(took), Slowest: slices.Max(took), Connections: l.Connections,
		Commands:    l.Commands,
		APIRequests: l.APIRequests, EtcdRequests: l.EtcdRequests, Addons: b.addons, Releases: b.releases,
		Within: l.Connections == 1 && l.Commands == 1,
	}, nil
}

// planNothing runs the program, which must find nothing to do.
func (b *bench) planNothing(ctx context.Context) error {
	cmd := b.productCommand(ctx, "plan", "-m", b.lab.Path("kubeone.yaml"), "--bundle", b.lab.Bundle)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	status, err := exitStatus(cmd.Run())
	switch {
	case err != nil:
	case status == 2:
		err = errors.New("it is not as its manifest says")
	case status != 0:
		err = fmt.Errorf("exit status %d", status)
	}
	if err != nil {
		return withLastLines(fmt.Errorf("plan of the cluster just made: %w", err), printed.String())
	}
	return nil
}
