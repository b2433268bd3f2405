package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// reportWrites returns a report with n writes.
func reportWrites(n int64) (usageReport, error) { return usageReport{Writes: n}, nil }

func TestIdleAfterLastWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const work = 10 * time.Second
		began := time.Now()
		got, err := awaitIdle(t.Context(), func() (usageReport, error) {
			return reportWrites(int64(min(time.Since(began), work)))
		})
		if took := time.Since(began); err != nil || got.Writes != int64(work) || took < work+quietFor ||
			took > work+quietFor+time.Second {
			t.Errorf("after %v: %d writes, error %v", took, got.Writes, err)
		}
	})
}

func TestWritingControllersAreNotIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := awaitIdle(t.Context(), func() (usageReport, error) { return reportWrites(int64(time.Since(began))) })
		if err == nil || !strings.Contains(err.Error(), "go on writing") || time.Since(began) != quietWithin {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestWaitForIdleEndsWithControllers(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	if _, err := awaitIdle(t.Context(), func() (usageReport, error) { return usageReport{}, gone }); !errors.Is(err,
		gone) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := awaitIdle(ctx, func() (usageReport, error) { return reportWrites(0) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLeasesAreNotWrites(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	counted := &counter{}
	client := http.Client{Transport: &counting{http.DefaultTransport, counted}}
	for _, r := range [][2]string{
		{http.MethodGet, "/api/v1/nodes"}, {http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"},
		{http.MethodPatch, "/api/v1/nodes/a"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r[0], server.URL+r[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if got := counted.readUsage(); got.Requests != 3 || got.Writes != 1 {
		t.Errorf("%d requests, %d writes, want 3 and 1", got.Requests, got.Writes)
	}
}
