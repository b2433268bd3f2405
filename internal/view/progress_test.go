package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
)

func TestProgressInLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		run     *stream
		style   Style
		verbose bool
	}{
		{"joined", joined(), inPipe, false},
		{"joined-verbose", joined(), inPipe, true},
		{"broken", brokenJoin(), inPipe, false},
		{"stopped", stopped(), inPipe, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := render(func(b *bytes.Buffer) {
				p := NewProgress(b, c.style, c.run.plan, c.verbose)
				for _, e := range c.run.events {
					p.Event(e)
				}
				p.Close()
				p.Close()
			})
			mustBePlain(t, c.style, got)
			pinned(t, "progress-"+c.name+".txt", got)
		})
	}
}

func TestSkippedStepsAreToldEvenIfNothingFollows(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := NewProgress(&b, inPipe, install(), false)
	p.Event(apply.Event{Type: apply.StepSkipped, Host: "cp-2", Title: "join: etcd member"})
	p.Close()
	if want := "   0.0s  skipped 1 step: cp-2 join: etcd member\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// terminal emulates a scrolling screen for the live display; other control sequences are mistakes.
type terminal struct {
	t     *testing.T
	lines []string // everything not erased; the cursor is at the beginning of the next line
}

func (s *terminal) Write(p []byte) (int, error) {
	text := string(p)
	if up, rest, found := strings.Cut(text, "A\r\x1b[J"); found && strings.HasPrefix(up, "\x1b[") {
		var n int
		if _, err := fmt.Sscanf(up, "\x1b[%d", &n); err != nil || n > len(s.lines) {
			s.t.Errorf("the cursor goes up %q of %d lines: %v", up, len(s.lines), err)
			return len(p), nil
		}
		s.lines, text = s.lines[:len(s.lines)-n], rest
	}
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") || strings.ContainsAny(line, "\x1b\r") {
			s.t.Errorf("unexpected output %q", line)
		}
		s.lines = append(s.lines, strings.TrimSuffix(line, "\n"))
	}
	return len(p), nil
}

// TestLiveProgress checks the screen after every event.
func TestLiveProgress(t *testing.T) {
	t.Parallel()
	style := Style{Unicode: true, Live: true, Width: 72}
	for _, c := range []struct {
		name string
		run  *stream
	}{{"joined", joined()}, {"broken", brokenJoin()}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			screen := &terminal{t: t}
			clock := now()
			p := newLiveProgress(screen, style, c.run.plan, false, func() time.Time { return clock }, nil)
			var film strings.Builder
			for _, e := range c.run.events {
				p.mu.Lock()
				clock = e.Time.Add(time.Second / 2)
				p.mu.Unlock()
				p.Event(e)
				p.mu.Lock()
				p.writeAndDraw(nil) // like a tick
				p.mu.Unlock()
				fmt.Fprintf(&film, "--- %s %s\n%s\n", e.Type, e.Step, strings.Join(screen.lines, "\n"))
				for _, line := range screen.lines[len(screen.lines)-p.drawn:] {
					if textWidth(line) >= style.Width {
						t.Errorf("the terminal would break %q", line)
					}
				}
			}
			p.Close()
			pinned(t, "live-"+c.name+".txt", film.String())
			lines := render(func(b *bytes.Buffer) {
				plain := NewProgress(b, Style{Unicode: true}, c.run.plan, false)
				for _, e := range c.run.events {
					if e.Type != apply.Heartbeat {
						plain.Event(e)
					}
				}
			})
			if diff := cmp.Diff(lines, strings.Join(screen.lines, "\n")+"\n"); diff != "" {
				t.Errorf("what stays on the screen is not what a file has (-file +screen):\n%s", diff)
			}
		})
	}
}

func TestLiveLinesNeverFillTheScreen(t *testing.T) {
	t.Parallel()
	p := plan.Plan{Hosts: map[string]string{}}
	tr := newTrack(inPipe, p, false)
	for i := range 100 {
		tr.recordEvent(apply.Event{
			Type: apply.StepStarted, Time: now(), Step: fmt.Sprint(i), Host: fmt.Sprintf("worker-%d", i),
			Title: strings.Repeat("long ", 40),
		})
	}
	got := tr.liveLines(now().Add(time.Minute), 40, 10)
	if len(got) != 7 {
		t.Errorf("%d lines on a screen of 10", len(got))
	}
	for _, line := range got {
		if textWidth(line) >= 40 {
			t.Errorf("%d columns on a screen of 40: %q", textWidth(line), line)
		}
	}
	if want := "         and 95 more"; got[5] != want {
		t.Errorf("got %q, want %q", got[5], want)
	}
}

func TestLiveProgressRedrawsAtTicksAndStopsAtClose(t *testing.T) {
	t.Parallel()
	ticks := make(chan time.Time)
	screen := &terminal{t: t}
	clock := now()
	released := 0
	p := newLiveProgress(screen, Style{Live: true, Width: 80}, install(), false, func() time.Time { return clock }, ticks)
	p.release = func() { released++ }
	p.Event(apply.Event{
		Type: apply.StepStarted, Time: now(), Step: "init/cp-1", Host: "cp-1", Title: "create the cluster",
	})
	before := strings.Join(screen.lines, "\n")
	p.mu.Lock()
	clock = clock.Add(7 * time.Second)
	p.mu.Unlock()
	ticks <- clock
	ticks <- clock // received only after the first tick was drawn
	p.mu.Lock()
	after := strings.Join(screen.lines, "\n")
	p.mu.Unlock()
	if !strings.Contains(before, " 0s") || !strings.Contains(after, " 7s") {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	p.Close()
	p.Close()
	if len(screen.lines) != 0 || released != 1 {
		t.Errorf("after Close: lines %q, ticker stopped %d times", screen.lines, released)
	}
}

func TestProgressTakesEventsOfManyGoroutines(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Progress{
		"lines": NewProgress(&bytes.Buffer{}, inPipe, install(), true),
		"live":  NewProgress(&terminal{t: t}, Style{Live: true, Width: 80}, install(), true),
		"json":  NewJSONProgress(&bytes.Buffer{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					id := fmt.Sprint(i)
					p.Event(apply.Event{Type: apply.StepStarted, Time: now(), Step: id})
					for range 50 {
						p.Event(apply.Event{Type: apply.StepOutput, Time: now(), Step: id, Line: "x"})
					}
					p.Event(apply.Event{Type: apply.StepDone, Time: now(), Step: id})
				})
			}
			wg.Wait()
			p.Close()
		})
	}
}

func TestProgressAsJSONIsTheEvents(t *testing.T) {
	t.Parallel()
	run := brokenJoin()
	text := render(func(b *bytes.Buffer) {
		p := NewJSONProgress(b)
		for _, e := range run.events {
			p.Event(e)
		}
		p.Close()
	})
	pinned(t, "events-broken.jsonl", text)
	var got []apply.Event
	for line := range strings.Lines(text) {
		var e apply.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in line %q", err, line)
		}
		got = append(got, e)
	}
	if diff := cmp.Diff(run.events, got); diff != "" {
		t.Errorf("(-emitted +read):\n%s", diff)
	}
}

func TestTiming(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]*stream{"joined": joined(), "broken": brokenJoin()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render(func(b *bytes.Buffer) { Timing(b, inPipe, run.plan, run.events) })
			mustBePlain(t, inPipe, got)
			pinned(t, "timing-"+name+".txt", got)
		})
	}
	if got := render(func(b *bytes.Buffer) { Timing(b, inPipe, install(), newStream(install()).events) }); got != "" {
		t.Errorf("a run without steps has times:\n%s", got)
	}
}
