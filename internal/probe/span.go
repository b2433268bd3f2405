package probe

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Span is a part of finding out, and when it happened, counted from the beginning.
type Span struct {
	Host     string // ID
	What     string // "connect", "script", a part of the script; "API" and "etcd", which are asked through the host
	From, To time.Duration
}

const (
	mostParts     = 32  // of the script are kept
	longestUptime = 1e9 // seconds: 31 years
)

// parts reads when each part of the script ran, counted from the first. Their clock goes in steps of 10 ms. A part is
// called by a word, and not as what is asked through a host.
func parts(l lines) []Span {
	var out []Span
	var first time.Duration
	for _, v := range l["part"] {
		fields := strings.Fields(v)
		if len(fields) != 3 || len(out) == mostParts || !partName(fields[0]) {
			continue
		}
		from, fromErr := strconv.ParseFloat(fields[1], 64)
		to, toErr := strconv.ParseFloat(fields[2], 64)
		if fromErr != nil || toErr != nil || !(0 <= from && from <= to && to <= longestUptime) {
			continue // NaN is no time either
		}
		s := Span{What: fields[0], From: uptime(from), To: uptime(to)}
		if len(out) == 0 || s.From < first {
			first = s.From
		}
		out = append(out, s)
	}
	for i := range out {
		out[i].From -= first
		out[i].To -= first
	}
	return out
}

func partName(s string) bool { return word(s) != "" && s != "API" && s != "etcd" }

func uptime(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// note adds spans of a host whose times are counted from the given moment.
func (p *prober) note(host string, from time.Time, spans ...Span) {
	offset := from.Sub(p.began)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range spans {
		p.spans = append(p.spans, Span{Host: host, What: s.What, From: s.From + offset, To: s.To + offset})
	}
}

// inOrder sorts spans by when they began, the longer first.
func inOrder(spans []Span) []Span {
	slices.SortStableFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To), cmp.Compare(a.Host, b.Host))
	})
	return spans
}
