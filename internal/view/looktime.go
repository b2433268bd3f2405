package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kubeone/internal/plan"
	"kubeone/internal/probe"
)

// slowest is how many hosts are shown when there are more.
const slowest = 10

// LookTime writes where the time of a plan went: load is what passed before the first host was asked, whole what passed
// from then on. All times count from then, in milliseconds. Hosts are those that took longest.
func LookTime(w io.Writer, s Style, p plan.Plan, spans []probe.Span, load, whole time.Duration) {
	out := &page{style: s}
	out.heading("Time of this plan")
	t := &table{indent: 2, head: []string{"WHAT", "BEGAN", "ENDED", "PARTS"}}
	row := func(what string, from, to time.Duration, note string) {
		t.add(cell{what, plain}, cell{right(milliseconds(from), 5), plain}, cell{right(milliseconds(to), 5), plain},
			cell{note, dim})
	}
	row("manifest, addons, bundle", -load, 0, "")
	hosts := lookedAt(spans)
	for _, h := range hosts[:min(len(hosts), slowest)] {
		row(hostOr(p.Hosts[h.host]), h.from, h.to, h.parts())
	}
	var ended time.Duration
	for _, span := range spans {
		if ended = max(ended, span.To); span.What == "API" || span.What == "etcd" {
			row(span.What+" through "+hostOr(p.Hosts[span.Host]), span.From, span.To, "")
		}
	}
	row("decide, plan, render", ended, whole, "")
	out.table(t)
	if more := len(hosts) - slowest; more > 0 {
		out.line(fmt.Sprintf("  %d more hosts ended earlier", more))
	}
	out.flush(w)
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// lookedAtHost is one host and its spans, in the order in which they began.
type lookedAtHost struct {
	host     string
	from, to time.Duration
	spans    []probe.Span
}

// lookedAt are the hosts, the last to end first.
func lookedAt(spans []probe.Span) []lookedAtHost {
	index := map[string]int{}
	var out []lookedAtHost
	for _, s := range spans {
		if s.What == "API" || s.What == "etcd" {
			continue
		}
		i, known := index[s.Host]
		if !known {
			i = len(out)
			index[s.Host] = i
			out = append(out, lookedAtHost{host: s.Host, from: s.From})
		}
		out[i].to = max(out[i].to, s.To)
		out[i].spans = append(out[i].spans, s)
	}
	slices.SortStableFunc(out, func(a, b lookedAtHost) int { return int(b.to - a.to) })
	return out
}

// parts is how long each part took.
func (h lookedAtHost) parts() string {
	out := make([]string, 0, len(h.spans))
	for _, s := range h.spans {
		out = append(out, s.What+" "+milliseconds(s.To-s.From))
	}
	return strings.Join(out, ", ")
}
