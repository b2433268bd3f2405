package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCPU(t *testing.T) {
	t.Parallel()
	// user nice system idle iowait irq softirq steal guest guest_nice
	got, err := parseCPU([]byte("cpu  100 20 30 4000 500 6 7 900 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(1.63, got); diff != "" {
		t.Errorf("busy seconds (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2\n", "cpu a b c d e f g h\n"} {
		if _, err := parseCPU([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		values []float64
		want   float64
	}{
		"none": {nil, 0},
		"one":  {[]float64{3}, 3},
		"odd":  {[]float64{9, 1, 5}, 5},
		"even": {[]float64{4, 1, 2, 9}, 3},
	}
	for name, test := range tests {
		if got := medianOf(test.values); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
