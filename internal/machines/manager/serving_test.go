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
	s := &serving{log: slog.New(slog.NewTextHandler(&log, nil))}
	if !s.shouldTell("a", "one") || s.shouldTell("a", "one") || !s.shouldTell("a", "another") {
		t.Error("a reason is told once")
	}
	told := 0
	for i := range 3 * mostTold {
		if s.shouldTell("flood-"+strconv.Itoa(i), "one") {
			told++
		}
	}
	if told != mostTold-1 || strings.Count(log.String(), "others are not reported") != 1 {
		t.Errorf("%d requests are told of, and the log says %q", told, log.String())
	}
	s.forgetRequest("a")
	if !s.shouldTell("b", "one") {
		t.Error("there is room for another one")
	}
}
