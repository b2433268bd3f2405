package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"kubeone/internal/apply"
)

// What an apply is for.
const (
	installing = "installing with kubeone" // bare hosts
	upgrading  = "upgrading with kubeone"  // a cluster of an older version
)

// apply runs kubeone apply on the lab and measures it.
func (b *bench) apply(ctx context.Context, title string) (applied, error) {
	var a applied
	if err := settle(b.lab.Bundle); err != nil {
		return a, err
	}
	b.log("%s", title)
	cmd := b.product(ctx, "apply", "-m", b.lab.Path("kubeone.yaml"), "--bundle", b.lab.Bundle, "--auto-approve", "-o",
		"json")
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	began := time.Now()
	var err error
	a.cost, err = timed(cmd.Run)
	if b.traceFile != "" {
		if err := os.WriteFile(b.traceFile, out.Bytes(), 0o644); err != nil {
			return a, err
		}
	}
	if err != nil {
		return a, failure(err, messages.String())
	}
	events, err := readEvents(&out)
	if err != nil {
		return a, err
	}
	t, err := newTimeline(events)
	if err != nil {
		return a, err
	}
	a.Stages, a.Work = t.stages(began, began.Add(seconds(a.Seconds))), t.work()
	a.Outside = outside(a.Stages)
	return a, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// readEvents reads the event stream of apply -o json.
func readEvents(r io.Reader) ([]apply.Event, error) {
	var events []apply.Event
	for decoder := json.NewDecoder(r); ; {
		var e apply.Event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return events, nil
		} else if err != nil {
			return nil, fmt.Errorf("event %d of the stream: %w", len(events)+1, err)
		}
		if e.Format != apply.EventFormat {
			return nil,
				fmt.Errorf("event %d of the stream has format %d, want %d", len(events)+1, e.Format, apply.EventFormat)
		}
		events = append(events, e)
	}
}
