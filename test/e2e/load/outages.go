package load

import "time"

// Outages are the times in which requests did not succeed: each from the start of the first that failed to the end of
// the next that succeeded.
type Outages struct {
	Asked   int     `json:"asked"`
	Failed  int     `json:"failed"`
	Count   int     `json:"outages"`
	Longest float64 `json:"longestSeconds"`
	Sum     float64 `json:"sumSeconds"`
	// LastError is how the last request that failed did.
	LastError string `json:"lastError,omitempty"`

	since time.Time // of the outage that goes on
}

// note adds a request. Requests come in the order in which they were made.
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

// closed are the outages when nothing more comes: one that goes on ends now.
func (o Outages) closed(now time.Time) Outages {
	o.end(now)
	return o
}
