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

// noteRequest adds a request. Calls are in the order of the requests.
func (o *Outages) noteRequest(began, ended time.Time, err error) {
	o.Asked++
	if err != nil {
		o.Failed++
		o.LastError = err.Error()
		if o.since.IsZero() {
			o.since = began
		}
		return
	}
	o.endOutage(ended)
}

func (o *Outages) endOutage(at time.Time) {
	if o.since.IsZero() {
		return
	}
	took := at.Sub(o.since).Seconds()
	o.Count, o.Sum, o.Longest, o.since = o.Count+1, o.Sum+took, max(o.Longest, took), time.Time{}
}

// closedAt returns the outages with a current one ended now.
func (o Outages) closedAt(now time.Time) Outages {
	o.endOutage(now)
	return o
}
