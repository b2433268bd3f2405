package engine

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/observed"
	"kubeone/internal/step"
)

// progress asks the members that are left up to which revision they have the data, where a cluster is recovered from
// one of them and there may be more than one to choose from. One that does not say is missing in the answer. Other than
// what was agreed upon, the revision is known without a quorum.
func (e *Engine) progress(ctx context.Context, p Proposal) map[string]int64 {
	out := map[string]int64{}
	if recovery, ok := p.Request.(Recover); !ok || recovery.About.From != step.SurvivingMember {
		return out
	}
	const ask = `curl -q -s -m 2 http://127.0.0.1:2381/metrics`
	cmd := host.Cmd{
		Name:    "ask etcd how far it had got",
		Script:  ask + ` | sed -n '/^` + revisionMetric + ` /p'`,
		Timeout: 10 * time.Second,
	}
	for _, h := range p.Want.ControlPlane {
		if seen := p.Observed.World.Hosts[h.ID]; seen.Reach != observed.Reached || seen.EtcdData != observed.Yes {
			continue
		}
		res, err := e.HostOf(p, h.ID).Run(ctx, cmd)
		if err != nil {
			continue
		}
		if n := revisionIn(string(res.Stdout)); n > 0 {
			out[h.ID] = n
		}
	}
	return out
}

// revisionMetric is the revision of the last change in a member's data.
const revisionMetric = "etcd_debugging_mvcc_current_revision"

// revisionIn reads it from a member's metrics; 0 where they do not tell.
func revisionIn(metrics string) int64 {
	for line := range strings.Lines(metrics) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), revisionMetric+" ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil && n > 0 && n < math.MaxInt64 {
			return int64(n)
		}
	}
	return 0
}
