package progress

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDuring(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		takes time.Duration
		err   error
		want  []string
	}{
		{"what is there already is not worth a line", 100 * time.Millisecond, nil, nil},
		{"something short: its beginning and its end", 2 * time.Second, nil,
			[]string{"0.3s etcd", "2s etcd: done in 2s"}},
		{"something long is mentioned every 10 s", 25 * time.Second, nil, []string{
			"0.3s etcd", "10.3s etcd: 10s so far", "20.3s etcd: 20s so far", "25s etcd: done in 25s",
		}},
		{"who gets the error tells of it", 11 * time.Second, errors.New("no space left"),
			[]string{"0.3s etcd", "10.3s etcd: 10s so far"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var lines []string
				log := Logf(func(format string, args ...any) {
					lines = append(lines, fmt.Sprintf("%gs ", time.Since(begun).Seconds())+fmt.Sprintf(format, args...))
				})
				err := log.During("etcd", func() error {
					time.Sleep(c.takes)
					return c.err
				})
				if !errors.Is(err, c.err) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				if diff := cmp.Diff(c.want, lines); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestDuringWithoutALog(t *testing.T) {
	t.Parallel()
	ran := false
	if err := Logf(nil).During("etcd", func() error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("ran %v, error %v", ran, err)
	}
}
