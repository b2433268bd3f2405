package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// tolerance is by how much the median of the present program's runs may be above that of the other's, besides what that
// one's own runs differ by.
const tolerance = 0.05

// side is one of the two programs that are compared.
type side struct {
	name    string
	kubeone string // the program
	bench   string // this program as of the same commit, which plays hosts that the other understands
	commit  string // "" for the present one
	state   string // folder for what the program keeps
}

// comparison is one figure of two programs, measured in turn.
type comparison struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Old   figures `json:"old"`
	New   figures `json:"new"`
	Ratio float64 `json:"ratio"` // of the medians, new by old
	// Within says that the new median is above the old one by no more than 5 % and the old one's spread.
	Within bool `json:"within"`
}

// figures are what one program took.
type figures struct {
	Program string    `json:"program"`
	Values  []float64 `json:"values"` // in the order in which they were measured
	Min     float64   `json:"min"`
	Median  float64   `json:"median"`
	Max     float64   `json:"max"`
	Spread  float64   `json:"spread"` // largest less smallest, as a share of the median
}

// sample is one figure of one run.
type sample struct {
	name, unit string
	value      float64
}

// contest measures one run of one program.
type contest func(ctx context.Context, s side) ([]sample, error)

// sides builds both programs.
func (b *bench) sides(ctx context.Context) ([2]side, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return [2]side{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return [2]side{}, err
	}
	old := side{name: b.against[:min(len(b.against), 7)], commit: b.against, state: filepath.Join(b.dir, "state-old")}
	present := side{name: "now", kubeone: b.kubeone, bench: self, state: filepath.Join(b.dir, "state-new")}
	b.log("building the programs of %s", b.against)
	for file, pkg := range map[*string]string{&old.kubeone: "./cmd/kubeone", &old.bench: "./bench"} {
		if *file, err = fleet.BuildAt(ctx, cache, b.against, pkg); err != nil {
			return [2]side{}, err
		}
	}
	return [2]side{old, present}, nil
}

// compare takes the named measurements of both programs, so many pairs of each.
func (b *bench) compare(ctx context.Context, names []string) (*report, error) {
	sides, err := b.sides(ctx)
	if err != nil {
		return nil, err
	}
	r := &report{Format: 1, Machine: thisMachine()}
	contests := map[string]func(context.Context, [2]side) (contest, func() error, error){
		"start": b.contestOfStart, "plan": b.contestOfPlan, "noop": b.contestOfNoop, "install": b.contestOfInstall,
		"upgrade": b.contestOfUpgrade,
	}
	for _, name := range names {
		b.log("comparing %s", name)
		run, end, err := contests[name](ctx, sides)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found, err := b.pairs(ctx, sides, run)
		if endErr := end(); err == nil {
			err = endErr
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r.Comparisons = append(r.Comparisons, found...)
	}
	return r, nil
}

// pairs runs both programs in turn. Which one is first changes from pair to pair, so that what drifts meanwhile is for
// and against each.
func (b *bench) pairs(ctx context.Context, sides [2]side, run contest) ([]comparison, error) {
	var order []sample
	values := map[string]*[2][]float64{}
	for n := range b.repeat {
		for i := range sides {
			which := (i + n) % len(sides)
			samples, err := run(ctx, sides[which])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sides[which].name, err)
			}
			for _, s := range samples {
				if values[s.name] == nil {
					values[s.name] = &[2][]float64{}
					order = append(order, s)
				}
				values[s.name][which] = append(values[s.name][which], s.value)
			}
			b.log("pair %d of %d, %s: %s", n+1, b.repeat, sides[which].name, samplesText(samples))
		}
	}
	out := make([]comparison, 0, len(order))
	for _, s := range order {
		of := values[s.name]
		out = append(out, compared(s, figuresOf(sides[0].name, of[0]), figuresOf(sides[1].name, of[1])))
	}
	return out, nil
}

func figuresOf(program string, values []float64) figures {
	f := figures{
		Program: program, Values: values, Min: slices.Min(values), Median: median(values), Max: slices.Max(values),
	}
	if f.Median > 0 {
		f.Spread = (f.Max - f.Min) / f.Median
	}
	return f
}

func compared(of sample, before, after figures) comparison {
	c := comparison{Name: of.name, Unit: of.unit, Old: before, New: after}
	if before.Median > 0 {
		c.Ratio = after.Median / before.Median
	}
	c.Within = c.Ratio <= 1+tolerance+before.Spread
	return c
}

// nothing is how a contest ends that leaves nothing behind.
func nothing() error { return nil }

// contestOfStart measures "version", the median of 20 runs.
func (b *bench) contestOfStart(context.Context, [2]side) (contest, func() error, error) {
	return func(ctx context.Context, s side) ([]sample, error) {
		var took []float64
		for range startRuns {
			start := time.Now()
			if out, err := s.command(ctx, "version").CombinedOutput(); err != nil {
				return nil, failure(err, string(out))
			}
			took = append(took, time.Since(start).Seconds())
		}
		return []sample{{"start", "s", median(took)}}, nil
	}, nothing, nil
}

// contestOfPlan measures a plan over simulated hosts. Each program has hosts of its own time: they answer what it asks.
func (b *bench) contestOfPlan(ctx context.Context, sides [2]side) (contest, func() error, error) {
	var playing []*hostsProcess
	end := func() (err error) {
		for _, p := range playing {
			if _, stopErr := p.stop(); err == nil {
				err = stopErr
			}
		}
		return err
	}
	manifests := map[string]string{}
	for _, s := range sides {
		p, err := startHostsOf(ctx, s.bench, filepath.Join(b.dir, "fleet-"+s.name), b.hosts[0])
		if err != nil {
			_ = end()
			return nil, nil, err
		}
		playing, manifests[s.name] = append(playing, p), p.manifest
	}
	return func(ctx context.Context, s side) ([]sample, error) {
		cmd := s.command(ctx, "plan", "-m", manifests[s.name])
		took, err := firstLook(cmd)
		if err != nil {
			return nil, err
		}
		used, name := usageOf(cmd.ProcessState), fmt.Sprintf("plan of %d hosts", b.hosts[0])
		return []sample{
			{name, "s", took},
			{name + ", processors", "s", used.cpu},
			{name + ", memory", "MB", float64(used.mb)},
		}, nil
	}, end, nil
}
