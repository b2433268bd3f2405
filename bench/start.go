package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// The budgets of the program itself.
const (
	startLimit = 0.060 // seconds
	sizeLimit  = 95    // MB
	startRuns  = 20
)

// startResult is the duration of "kubeone version", and the size of the program.
type startResult struct {
	Seconds       float64 `json:"seconds"` // the median of 20 runs
	SizeMB        float64 `json:"sizeMB"`  // stripped; 1 MB is 2^20 bytes
	WithinSeconds bool    `json:"withinSeconds"`
	WithinSize    bool    `json:"withinSize"`
}

func (b *bench) measureStart(ctx context.Context) (*startResult, error) {
	info, err := os.Stat(b.kubeone)
	if err != nil {
		return nil, err
	}
	var took []float64
	for range startRuns {
		start := time.Now()
		if out, err := b.productCommand(ctx, "version").CombinedOutput(); err != nil {
			return nil, withLastLines(fmt.Errorf("kubeone version: %w", err), string(out))
		}
		took = append(took, time.Since(start).Seconds())
	}
	r := &startResult{Seconds: medianOf(took), SizeMB: float64(info.Size()) / (1 << 20)}
	r.WithinSeconds, r.WithinSize = r.Seconds <= startLimit, r.SizeMB <= sizeLimit
	return r, nil
}
