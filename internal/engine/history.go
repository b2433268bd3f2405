package engine

import (
	"context"
	"errors"
	"fmt"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/cluster/record"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/etcd/snapshot"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/probe"
	"kubeone/internal/script"
	"kubeone/internal/text/pattern"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// History returns the runs in the cluster history, newest first. A run that has no end and holds no lock is returned as
// interrupted. If no API server answers, the error is an *apicall.Error of class Operator.
func (e *Engine) History(ctx context.Context) ([]record.Run, error) {
	result, err := e.Observe(ctx)
	if err != nil {
		return nil, err
	}
	if why := NoAPI(result); why != "" {
		return nil, &apicall.Error{
			Op: "read the history", Class: apicall.Operator,
			Err: errors.New("the Kubernetes API cannot be reached (" + why +
				"); see kubeone status. Runs from this machine are in its state directory, under journal"),
		}
	}
	client, err := cluster.Connect(*result.Access)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return Runs(ctx, client, result.World)
}

// NoAPI returns why the API cannot be used; "" if it can.
func NoAPI(r probe.Result) string {
	switch {
	case r.Access != nil && r.World.API.Reached == observed.Yes:
		return ""
	case r.World.API.Problem != "":
		return r.World.API.Problem
	}
	return "no control-plane host that answers has credentials"
}

// Runs does the same as History for callers with a connection to the API.
func Runs(ctx context.Context, client *cluster.Client, world observed.World) ([]record.Run, error) {
	record, err := client.Record(ctx)
	if err != nil || record == nil {
		return nil, err
	}
	if why := record.Unreadable[observed.RecordHistory]; why != "" {
		return nil, fmt.Errorf("the key %s of the ConfigMap kube-system/kubeone cannot be read (%s): the next run "+
			"starts a new history", observed.RecordHistory, why)
	}
	return newestFirst(record.History, world), nil
}

func newestFirst(runs []record.Run, world observed.World) []record.Run {
	out := slices.Clone(runs)
	slices.Reverse(out)
	for i := range out {
		if !hasLiveLock(world, out[i].ID) {
			out[i].Interrupt()
		}
	}
	return out
}

// hasLiveLock reports whether the run holds a live lock on a host or the Lease.
func hasLiveLock(world observed.World, runID string) bool {
	live := func(l *observed.Lock) bool { return l != nil && l.RunID == runID && l.Live }
	if live(world.API.Lease) {
		return true
	}
	for _, h := range world.Hosts {
		if live(h.Lock) {
			return true
		}
	}
	return false
}

// readProgress returns, by host ID, the revision of the etcd data on the hosts that survived, for a recovery. If etcd
// does not list its members, it also returns the members found in that data. Neither needs a quorum: they come from the
// running member, or from its database on disk if it is stopped. Hosts that do not answer are left out.
func (e *Engine) readProgress(ctx context.Context, p Proposal) map[string]plan.Progress {
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

// progressWithin limits the time for reading the revision on a host, which reads its database at most twice.
const progressWithin = 2 * time.Minute

// progressIn parses the output of script.Progress: "metric REVISION" takes precedence over "disk REVISION". Members in
// the database are "member KEYJSON" and "removed KEYremoved", as stored. ok is false if the output contains neither a
// revision nor members.
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
			if m, known := memberIn(value); known && len(members) < maxMembers {
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

// maxMembers limits the entries of members taken from one host.
const maxMembers = 500

func revisionIn(text string) (int64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return int64(n), err == nil && n > 0 && n < math.MaxInt64
}

// memberIn parses a member as etcd stores it: the ID in hexadecimal, then JSON, which contains the same ID.
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
