package load

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report holds the observations of a load.
type Report struct {
	Seconds float64 `json:"seconds"`
	// Starved is the share of time in which some process on this machine waited for a processor, 0 to 1.
	Starved float64 `json:"starved"`
	Client  Client  `json:"client"`
	// API counts whether a new client was served through the load balancer within a second.
	API Outages `json:"api"`
	// Pods and Requests are those of the Deployment, nil without one.
	Pods     *Pods    `json:"pods,omitempty"`
	Requests *Outages `json:"requests,omitempty"`
	// Refused are the unanswered requests by node.
	Refused map[string]*Refusal `json:"refused,omitempty"`
}

// Client holds the observations of the client that writes and reads.
type Client struct {
	calls
	Acknowledged int `json:"acknowledgedWrites"`
	// Lost are acknowledged writes that were missing at the end.
	Lost []int `json:"lost,omitempty"`
	// Wrong are reads that lacked the write before them.
	Wrong []string `json:"wrong,omitempty"`
}

// Pods holds the observations about the Deployment's pods.
type Pods struct {
	LeastReady int `json:"leastReady"`
	// LeastHealthy is the minimum in the budget's status. BudgetBroken counts how often it was less than the budget
	// requires.
	LeastHealthy int `json:"leastHealthy"`
	BudgetBroken int `json:"budgetBroken"`
	// ByEviction are the times when evictions left fewer ready pods than the disruption budget requires. Otherwise are
	// the times when pods became unready in place.
	ByEviction []string `json:"tooFewByEviction,omitempty"`
	Otherwise  []string `json:"tooFewOtherwise,omitempty"`
}

// Err returns nil when no acknowledged write was lost or read wrongly, no request failed after two retries, and the
// disruption budget was kept. It does not judge latency on a starved machine; see String.
func (r Report) Err() error {
	var problems []error
	if r.Client.Acknowledged == 0 {
		problems = append(problems, errors.New("nothing was written"))
	}
	if n := len(r.Client.Lost); n > 0 {
		problems = append(problems,
			fmt.Errorf("%d acknowledged writes were lost, the first is %d", n, r.Client.Lost[0]))
	}
	for _, wrong := range r.Client.Wrong {
		problems = append(problems, errors.New(wrong))
	}
	if r.Client.Failed > 0 && r.Starved <= starvedShare {
		problems = append(problems,
			fmt.Errorf("%d requests failed after two retries: %s", r.Client.Failed, formatCounts(r.Client.Errors)))
	}
	if r.Pods != nil {
		for _, when := range r.Pods.ByEviction {
			problems = append(problems, fmt.Errorf("evictions broke the disruption budget, %s", when))
		}
	}
	return errors.Join(problems...)
}

// String returns the report in a few lines.
func (r Report) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "load of %.0f s: %d writes acknowledged, %d lost; %d requests, %d retries, %d failed after two "+
		"retries, the slowest took %.1f s",
		r.Seconds, r.Client.Acknowledged, len(r.Client.Lost), r.Client.Requests, r.Client.Retries, r.Client.Failed,
		r.Client.Slowest)
	if r.Starved > starvedShare {
		fmt.Fprintf(&text, "\n  NOT JUDGED: how soon requests are served. Processes waited for a processor for "+
			"%.0f %% of the time: this machine is too busy to tell", 100*r.Starved)
	}
	if len(r.Client.Errors) > 0 {
		fmt.Fprintf(&text, "\n  attempts that failed: %s", formatCounts(r.Client.Errors))
	}
	fmt.Fprintf(&text, "\n  API through the load balancer: %s", r.API)
	if r.Pods != nil {
		fmt.Fprintf(&text, "\n  pods: %d ready at least (budget: %d), %d counted by the budget at least; below it %d "+
			"times by evictions, %d times otherwise",
			r.Pods.LeastReady, minAvailable, r.Pods.LeastHealthy, len(r.Pods.ByEviction), len(r.Pods.Otherwise))
		fmt.Fprintf(&text, "\n  requests to the pods: %s", *r.Requests)
		for _, node := range slices.Sorted(maps.Keys(r.Refused)) {
			refused := r.Refused[node]
			fmt.Fprintf(&text, "\n    %d not answered at %s, from %s to %s", refused.Count, node,
				refused.First.Format(time.TimeOnly), refused.Last.Format(time.TimeOnly))
		}
	}
	return text.String()
}

// String returns how often and how long requests failed.
func (o Outages) String() string {
	text := fmt.Sprintf("%d of %d requests answered; %d outages, the longest %.1f s, %.1f s together", o.Asked-o.Failed,
		o.Asked, o.Count, o.Longest, o.Sum)
	if o.LastError != "" {
		text += "; the last error: " + o.LastError
	}
	return text
}

func formatCounts(errs map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(errs)) {
		parts = append(parts, fmt.Sprintf("%d × %s", errs[kind], kind))
	}
	return strings.Join(parts, "; ")
}
