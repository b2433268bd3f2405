package engine

import (
	"context"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/script"
	"kubeone/internal/step"
)

// progress finds out up to which revision the hosts that are left have etcd's data, where a cluster is recovered from
// one of them: from the member, if it runs, else from its database on the disk, which nobody writes to then. One that
// does not say is missing in the answer. Other than what was agreed upon, the revision is known without a quorum.
func (e *Engine) progress(ctx context.Context, p Proposal) map[string]plan.Progress {
	out := map[string]plan.Progress{}
	if recovery, ok := p.Request.(Recover); !ok || recovery.About.From != step.SurvivingMember {
		return out
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, h := range p.Want.ControlPlane {
		if seen := p.Observed.World.Hosts[h.ID]; seen.Reach != observed.Reached || seen.EtcdData != observed.Yes {
			continue
		}
		all.Go(func() {
			res, err := e.HostOf(p, h.ID).Run(ctx, host.Cmd{
				Name: "ask etcd how far it had got", Script: script.Progress(), Timeout: progressWithin,
			})
			if err != nil {
				return
			}
			if said, ok := progressIn(string(res.Stdout)); ok {
				mu.Lock()
				defer mu.Unlock()
				out[h.ID] = said
			}
		})
	}
	all.Wait()
	return out
}

// progressWithin is how long a host may take to say how far it had got. Its whole database is read once.
const progressWithin = time.Minute

// progressIn is what a host printed: "metric REVISION" or "disk REVISION", of which the first is the better one.
func progressIn(said string) (p plan.Progress, ok bool) {
	for line := range strings.Lines(said) {
		kind, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !(n > 0 && n < math.MaxInt64) {
			continue
		}
		switch kind {
		case "metric":
			return plan.Progress{Revision: int64(n)}, true
		case "disk":
			p, ok = plan.Progress{Revision: int64(n), AtLeast: true}, true
		}
	}
	return p, ok
}
