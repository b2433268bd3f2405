package manager

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
)

// A node can create any number of requests that are never approved.
func TestRequestsLeftAloneAreToldOfOnceAndNotEndlessly(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := &servingReconciler{log: slog.New(slog.NewTextHandler(&log, nil))}
	if !s.shouldReport("a", "one") || s.shouldReport("a", "one") || !s.shouldReport("a", "another") {
		t.Error("a reason is told once")
	}
	told := 0
	for i := range 3 * maxReported {
		if s.shouldReport("flood-"+strconv.Itoa(i), "one") {
			told++
		}
	}
	if told != maxReported-1 || strings.Count(log.String(), "no more are reported") != 1 {
		t.Errorf("%d requests are told of, and the log says %q", told, log.String())
	}
	s.forgetRequest("a")
	if !s.shouldReport("b", "one") {
		t.Error("there is room for another one")
	}
}
