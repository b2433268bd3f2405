package engine

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/script"
	"kubeone/internal/text/pattern"
)

// progress finds out up to which revision the hosts that are left have etcd's data, and of which members it tells,
// where a cluster is recovered: from the member, if it runs, else from its database on the disk, which nobody writes to
// then. One that does not say is missing in the answer. Unlike what was agreed upon, both are known without a
// quorum. The members are searched for where etcd does not list them.
func (e *Engine) progress(ctx context.Context, p Proposal) map[string]plan.Progress {
	out, listed := map[string]plan.Progress{}, len(p.Observed.World.Etcd.Members) > 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, h := range p.Want.ControlPlane {
		if seen := p.Observed.World.Hosts[h.ID]; seen.Reach != observed.Reached || seen.EtcdData != observed.Yes {
			continue
		}
		all.Go(func() {
			res, err := e.HostOf(p, h.ID).Run(ctx, host.Cmd{
				Name: "ask etcd how far it had got", Script: script.Progress(!listed), Timeout: progressWithin,
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

// progressWithin is how long a host may take to say how far it had got. Its whole database is read twice at most.
const progressWithin = 2 * time.Minute

// progressIn is what a host printed: "metric REVISION" or "disk REVISION", of which the first is the better one.
// What its database has of etcd's members is "member KEYJSON" and "removed KEYremoved", as it stands there.
func progressIn(said string) (p plan.Progress, ok bool) {
	var metric bool
	var members []observed.Member
	removed := map[string]bool{}
	for line := range strings.Lines(said) {
		kind, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "metric", "disk":
			if n, known := revisionIn(value); known && !metric {
				metric = kind == "metric"
				p.Revision, p.AtLeast, ok = n, !metric, true
			}
		case "member":
			if m, known := memberIn(value); known && len(members) < mostMembers {
				members = append(members, m)
			}
		case "searched":
			p.Searched = true
		case "removed":
			removed[strings.TrimSuffix(value, "removed")] = true
		}
	}
	members = slices.DeleteFunc(members, func(m observed.Member) bool { return removed[m.ID] })
	p.Members = quorum.Merged(members)
	return p, ok || p.Searched || len(members) > 0
}

// mostMembers is how many accounts of members are taken from one host.
const mostMembers = 500

func revisionIn(text string) (int64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return int64(n), err == nil && n > 0 && n < math.MaxInt64
}

// memberIn reads a member as etcd stores it: the ID in hexadecimal, and its JSON, which has the ID too.
func memberIn(text string) (observed.Member, bool) {
	at := strings.IndexByte(text, '{')
	if at < 0 {
		return observed.Member{}, false
	}
	m, err := snapshot.ReadMember([]byte(text[at:]))
	ok := err == nil && m.ID == text[:at] && memberName().MatchString(m.Name)
	for _, u := range m.PeerURLs {
		ok = ok && peerURL().MatchString(u)
	}
	return m.Observed(), ok
}

var (
	memberName = pattern.Lazy(`^[A-Za-z0-9._-]{0,253}$`)
	peerURL    = pattern.Lazy(`^https?://[A-Za-z0-9.:\[\]_-]{1,300}$`)
)
