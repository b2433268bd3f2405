package view

import (
	"bytes"
	"testing"
	"time"

	"kubeone/internal/cluster/record"
)

// runs are one of each kind, newest first.
func runs() []record.Run {
	began := func(minute int) time.Time { return time.Date(2026, 8, 10, 3, minute, 0, 0, time.UTC) }
	install := record.Run{
		ID: "20260810T030000Z-7f3a10", Who: "ada", From: "laptop", Routes: []string{"install", "join"},
		Started: began(0), Finished: began(2).Add(300 * time.Millisecond),
		PlanDigest: "a64edf83e4c06171904b861105c89abfa7c14dff22f87ae96b7bc832b2767f38", Result: record.Done, Planned: 2,
		Steps: []record.Step{
			{ID: "prepare/cp-1", Result: record.Done, Began: 0.012, Seconds: 21.5},
			{ID: "init/cp-1", Result: record.Done, Began: 21.512, Seconds: 98.25},
		},
	}
	failed := record.Run{
		ID: "20260810T030500Z-0001ff", Who: "bob", From: "desk.example.com", Routes: []string{"upgrade"},
		Started: began(5), Finished: began(9),
		PlanDigest: "0b4e", Result: record.Failed,
		Error: "worker-1: cordon and drain: 1 pods were not evicted: shop/web-0 (its disruption budget " +
			"allows no disruption)",
		Planned: 5,
		Steps: []record.Step{
			{ID: "fetch/worker-1", Result: record.Done, Seconds: 2},
			{ID: "drain-node/worker-1", Result: record.Failed, Began: 2, Seconds: 238},
			{ID: "upgrade-worker/worker-1", Result: record.Skipped},
		},
	}
	killed := record.Run{
		ID: "20260810T031000Z-c0ffee", Who: "bob", From: "desk.example.com", Routes: []string{"upgrade"},
		Started: began(10), Result: record.Interrupted, Planned: 5,
		Steps: []record.Step{
			{ID: "fetch/worker-1", Result: record.Done, Seconds: 2},
			{ID: "drain-node/worker-1", Result: record.Interrupted, Began: 2},
		},
	}
	old := record.Run{
		ID: "20250101T000000Z-000000", Who: "eve", From: "\x1b[31mred",
		Started: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Finished: time.Date(2025, 1, 1, 2, 0, 0, 0, time.UTC),
		Result: record.Done, Planned: 300,
	}
	running := record.Run{
		ID: "20260810T031500Z-5eed00", Who: "ada", From: "laptop", Routes: []string{"repair"}, Started: began(15),
		Result: record.Running, Planned: 1,
	}
	return []record.Run{running, killed, failed, install, old}
}

func TestHistoryAsText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		style Style
		write func(b *bytes.Buffer, s Style)
	}{
		"all":     {inPipe, func(b *bytes.Buffer, s Style) { History(b, s, runs()) }},
		"wide":    {onTerminal, func(b *bytes.Buffer, s Style) { History(b, s, runs()) }},
		"none":    {inPipe, func(b *bytes.Buffer, s Style) { History(b, s, nil) }},
		"running": {inPipe, func(b *bytes.Buffer, s Style) { HistoryRun(b, s, runs()[0]) }},
		"killed":  {inPipe, func(b *bytes.Buffer, s Style) { HistoryRun(b, s, runs()[1]) }},
		"failed":  {onTerminal, func(b *bytes.Buffer, s Style) { HistoryRun(b, s, runs()[2]) }},
		"done":    {inPipe, func(b *bytes.Buffer, s Style) { HistoryRun(b, s, runs()[3]) }},
		"lost": {inPipe, func(b *bytes.Buffer, s Style) {
			killed := runs()[1]
			killed.Steps = nil
			HistoryRun(b, s, killed)
		}},
		"old": {inPipe, func(b *bytes.Buffer, s Style) { HistoryRun(b, s, runs()[4]) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render(func(b *bytes.Buffer) { c.write(b, c.style) })
			mustBePlain(t, c.style, got)
			pinned(t, "history-"+name+".txt", got)
		})
	}
}

func TestHistoryInColourIsTheHistoryInPlainWithColours(t *testing.T) {
	t.Parallel()
	for _, write := range []func(b *bytes.Buffer, s Style){
		func(b *bytes.Buffer, s Style) { History(b, s, runs()) },
		func(b *bytes.Buffer, s Style) { HistoryRun(b, s, runs()[2]) },
	} {
		colour := render(func(b *bytes.Buffer) { write(b, inColour) })
		plain := render(func(b *bytes.Buffer) { write(b, onTerminal) })
		if colour == plain || escapeSequence.ReplaceAllString(colour, "") != plain {
			t.Errorf("plain:\n%s\ncolour:\n%q", plain, colour)
		}
	}
}
