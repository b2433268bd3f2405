package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPairsAlternate(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{repeat: 3}, log: func(string, ...any) {}}
	values := map[string][]float64{"old": {10, 12, 11}, "now": {5, 6, 4}}
	var order []string
	got, err := b.pairs(t.Context(), [2]side{
		{name: "old"},
		{name: "now"},
	}, func(_ context.Context, s side) ([]sample, error) {
		order = append(order, s.name)
		v := values[s.name][0]
		values[s.name] = values[s.name][1:]
		return []sample{{"noop", "s", v}, {"memory", "MB", 100}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("old now now old old now", strings.Join(order, " ")); diff != "" {
		t.Error(diff)
	}
	want := []comparison{
		{
			Name: "noop", Unit: "s", Ratio: 5.0 / 11, Within: true,
			Old: figures{Program: "old", Values: []float64{10, 12, 11}, Min: 10, Median: 11, Max: 12, Spread: 2.0 / 11},
			New: figures{Program: "now", Values: []float64{5, 6, 4}, Min: 4, Median: 5, Max: 6, Spread: 2.0 / 5},
		},
		{
			Name: "memory", Unit: "MB", Ratio: 1, Within: true,
			Old: figures{Program: "old", Values: []float64{100, 100, 100}, Min: 100, Median: 100, Max: 100},
			New: figures{Program: "now", Values: []float64{100, 100, 100}, Min: 100, Median: 100, Max: 100},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAComparisonAllowsFivePercentAndTheSpread(t *testing.T) {
	t.Parallel()
	of := func(values ...float64) figures { return figuresOf("p", values) }
	for _, c := range []struct {
		before, after figures
		want          bool
	}{
		{of(1, 1, 1), of(1.04, 1.04, 1.04), true},
		{of(1, 1, 1), of(1.06, 1.06, 1.06), false},
		{of(0.95, 1, 1.05), of(1.14, 1.14, 1.14), true},
		{of(0.95, 1, 1.05), of(1.16, 1.16, 1.16), false},
	} {
		if got := compared(sample{name: "x"}, c.before, c.after); got.Within != c.want {
			t.Errorf("%v after %v: within %v, want %v", c.after.Values, c.before.Values, got.Within, c.want)
		}
	}
}

func TestAFailedRunEndsTheComparison(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{repeat: 2}, log: func(string, ...any) {}}
	broken := errors.New("no cluster")
	_, err := b.pairs(t.Context(), [2]side{
		{name: "old"},
		{name: "now"},
	}, func(_ context.Context, s side) ([]sample, error) {
		if s.name == "now" {
			return nil, broken
		}
		return nil, nil
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "now") {
		t.Errorf("error %v", err)
	}
}

func TestAComparisonIsPrinted(t *testing.T) {
	t.Parallel()
	r := report{
		Format: 1,
		Comparisons: []comparison{
			compared(sample{"noop", "s", 0}, figuresOf("b229f5f", []float64{0.44, 0.45, 0.5}),
				figuresOf("now", []float64{0.2, 0.21, 0.22})),
		},
	}
	var out bytes.Buffer
	if err := r.print(&out, "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"noop, s: 3 pairs, ratio 0.47 (within",
		"b229f5f       0.440     0.450     0.500     " +
			"13 %  0.440 0.450 0.500", "now           0.200"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
