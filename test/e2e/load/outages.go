package load

import "time"

// Outages are the times without successful requests, from the start of a failed request to the end of the next
// successful one.
type Outages struct {
	Asked   int     `json:"asked"`
	Failed  int     `json:"failed"`
	Count   int     `json:"outages"`
	Longest float64 `json:"longestSeconds"`
	Sum     float64 `json:"sumSeconds"`
	// LastError is the error of the last failed request.
	LastError string `json:"lastError,omitempty"`

	since time.Time // start of the current outage
}

// note adds a request. Calls are in the order of the requests.
func (o *Outages) note(began, ended time.Time, err error) {
	o.Asked++
	if err != nil {
		o.Failed++
		o.LastError = err.Error()
		if o.since.IsZero() {
			o.since = began
		}
		return
	}
	o.end(ended)
}

func (o *Outages) end(at time.Time) {
	if o.since.IsZero() {
		return
	}
	took := at.Sub(o.since).Seconds()
	o.Count, o.Sum, o.Longest, o.since = o.Count+1, o.Sum+took, max(o.Longest, took), time.Time{}
}

// closed returns the outages with a current one ended now.
func (o Outages) closed(now time.Time) Outages {
	o.end(now)
	return o
}
