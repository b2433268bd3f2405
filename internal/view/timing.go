package view

import (
	"fmt"
	"io"
	"kubeone/internal/apply"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"slices"
	"strings"
	"time"
)

// Timing writes how long the parts of a run took. For each stage, it writes the number of steps, when the first step
// began, how long at least one step was running, and the longest step. Then it writes the critical path. It omits steps
// that did not run, and writes nothing if no step ran.
func Timing(w io.Writer, s Style, p plan.Plan, events []apply.Event) {
	spans := finishedSpans(p, events)
	if len(spans) == 0 {
		return
	}
	out := &page{style: s}
	out.addHeading("Time per stage")
	out.addStages(p, spans)
	path := criticalPath(spans)
	first := slices.MinFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	out.addHeading("Critical path (" + formatDuration(path[len(path)-1].to.Sub(first.from)) + ")")
	out.addCriticalPath(p, path, first.from)
	out.flush(w)
}

// span is a step with the time when it ran.
type span struct {
	step     plan.Step
	from, to time.Time
	failed   bool
}

// finishedSpans returns the finished steps, in the order in which they ended.
func finishedSpans(p plan.Plan, events []apply.Event) []span {
	var out []span
	for _, e := range events {
		if e.Type != apply.StepDone && e.Type != apply.StepFailed {
			continue
		}
		if step, ok := p.Step(e.Step); ok {
			out = append(out, span{step, e.Time.Add(-secondsToDuration(e.Seconds)), e.Time, e.Type == apply.StepFailed})
		}
	}
	return out
}

// addStages writes a line for each stage, in the order in which the stages began, and the total.
func (p *page) addStages(pl plan.Plan, spans []span) {
	byBegin := slices.SortedStableFunc(slices.Values(spans), func(a, b span) int { return a.from.Compare(b.from) })
	var order []string
	byStage := map[string][]span{}
	for _, s := range byBegin {
		name := string(s.step.Intent.Kind.Group())
		if byStage[name] == nil {
			order = append(order, name)
		}
		byStage[name] = append(byStage[name], s)
	}
	began := byBegin[0].from
	t := &table{indent: 2, head: []string{"STAGE", "STEPS", " BEGAN", "  TOOK", "LONGEST"}}
	for _, name := range order {
		t.addRow(stageRow(pl, name, byStage[name], began)...)
	}
	ended := lastEnd(spans)
	t.addRow(cell{"total", bold}, cell{padLeft(fmt.Sprint(len(spans)), 5), bold}, cell{},
		cell{padLeft(formatDuration(ended.Sub(began)), 6), bold}, cell{})
	p.addTable(t)
}

func stageRow(pl plan.Plan, name string, spans []span, began time.Time) []cell {
	longest := slices.MaxFunc(spans, func(a, b span) int { return int(a.to.Sub(a.from) - b.to.Sub(b.from)) })
	note := ""
	if len(spans) > 1 {
		note = hostOrCluster(pl.Hosts[longest.step.Host]) + " " + cleanText(longest.step.Title) + " " +
			formatDuration(longest.to.Sub(longest.from))
	}
	from := spans[0].from
	return []cell{
		{name, plain}, {padLeft(fmt.Sprint(len(spans)), 5), plain},
		{padLeft(formatDuration(from.Sub(began)), 6), plain},
		{padLeft(formatDuration(runningTime(spans)), 6), plain}, {note, dim},
	}
}

// runningTime returns how long at least one of the steps was running. The spans must be sorted by their start time.
func runningTime(spans []span) time.Duration {
	var sum time.Duration
	var until time.Time
	for _, s := range spans {
		from := s.from
		if from.Before(until) {
			from = until
		}
		if s.to.After(from) {
			sum, until = sum+s.to.Sub(from), s.to
		}
	}
	return sum
}

func lastEnd(spans []span) time.Time {
	return slices.MaxFunc(spans, func(a, b span) int { return a.to.Compare(b.to) }).to
}

// criticalPath returns the chain of steps that determined when the run ended, in order. It starts at the step that
// ended last, and repeatedly goes back to the step that ended last among those that the current step waited for
// (waitsFor).
func criticalPath(spans []span) []span {
	current := slices.MaxFunc(spans, func(a, b span) int { return a.to.Compare(b.to) })
	path := []span{current}
	for {
		var before []span
		for _, s := range spans {
			if s.step.ID != current.step.ID && !s.to.After(current.from) && waitsFor(current.step, s.step) {
				before = append(before, s)
			}
		}
		if len(before) == 0 {
			slices.Reverse(path)
			return path
		}
		current = slices.MaxFunc(before, func(a, b span) int { return a.to.Compare(b.to) })
		path = append(path, current)
	}
}

// waitsFor reports whether a step waits for an earlier one: it needs that step, is on the same host, or both change the
// etcd membership.
func waitsFor(step, before plan.Step) bool {
	return slices.Contains(step.Needs, before.ID) ||
		step.Host != "" && step.Host == before.Host ||
		step.Intent.Kind.ChangesMembership() && before.Intent.Kind.ChangesMembership()
}

// addCriticalPath writes the steps in the chain. Between two steps, it writes how long the later step waited.
func (p *page) addCriticalPath(pl plan.Plan, path []span, began time.Time) {
	t := &table{indent: 2}
	for _, s := range path {
		if wait := s.from.Sub(began); wait >= 100*time.Millisecond {
			t.addRow(cell{padLeft(formatDuration(wait), 6), dim}, cell{}, cell{"waited", dim})
		}
		began = s.to
		title := cell{cleanText(s.step.Title), plain}
		if s.failed {
			title = cell{title.text + " (failed)", red}
		}
		t.addRow(cell{padLeft(formatDuration(s.to.Sub(s.from)), 6), plain}, cell{hostOrCluster(pl.Hosts[s.step.Host]), plain},
			title)
	}
	p.addTable(t)
}

// maxSlowHosts is the maximum number of hosts that PlanTiming writes.
const maxSlowHosts = 10

// PlanTiming writes how long the parts of planning took, in milliseconds since the first host was contacted, for the
// slowest hosts, the API and etcd. load is the time before that contact, total the time from then to the end.
func PlanTiming(w io.Writer, s Style, p plan.Plan, spans []probe.Span, load, total time.Duration) {
	out := &page{style: s}
	out.addHeading("Time of this plan")
	t := &table{indent: 2, head: []string{"WHAT", "BEGAN", "ENDED", "PARTS"}}
	row := func(what string, from, to time.Duration, note string) {
		t.addRow(cell{what, plain}, cell{padLeft(formatMilliseconds(from), 5), plain},
			cell{padLeft(formatMilliseconds(to), 5), plain},
			cell{note, dim})
	}
	row("manifest, addons, bundle", -load, 0, "")
	hosts := probedHosts(spans)
	for _, h := range hosts[:min(len(hosts), maxSlowHosts)] {
		row(hostOrCluster(p.Hosts[h.host]), h.from, h.to, h.partTimes())
	}
	var ended time.Duration
	for _, span := range spans {
		if ended = max(ended, span.To); span.What == "API" || span.What == "etcd" {
			row(span.What+" through "+hostOrCluster(p.Hosts[span.Host]), span.From, span.To, "")
		}
	}
	row("decide, plan, render", ended, total, "")
	out.addTable(t)
	if more := len(hosts) - maxSlowHosts; more > 0 {
		out.addLine(fmt.Sprintf("  %d more hosts ended earlier", more))
	}
	out.flush(w)
}

func formatMilliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// probedHost is one host with the spans of its probes, in the order in which they began.
type probedHost struct {
	host     string
	from, to time.Duration
	spans    []probe.Span
}

// probedHosts returns the probed hosts. The host whose probe ended last is first.
func probedHosts(spans []probe.Span) []probedHost {
	index := map[string]int{}
	var out []probedHost
	for _, s := range spans {
		if s.What == "API" || s.What == "etcd" {
			continue
		}
		i, known := index[s.Host]
		if !known {
			i = len(out)
			index[s.Host] = i
			out = append(out, probedHost{host: s.Host, from: s.From})
		}
		out[i].to = max(out[i].to, s.To)
		out[i].spans = append(out[i].spans, s)
	}
	slices.SortStableFunc(out, func(a, b probedHost) int { return int(b.to - a.to) })
	return out
}

// partTimes returns the name and duration of each span.
func (h probedHost) partTimes() string {
	out := make([]string, 0, len(h.spans))
	for _, s := range h.spans {
		out = append(out, s.What+" "+formatMilliseconds(s.To-s.From))
	}
	return strings.Join(out, ", ")
}
