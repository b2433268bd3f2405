package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/cluster"
	"kubeone/internal/etcd"
	"kubeone/internal/host"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/testutil/hostfake"
)

// votes is an etcd with a series of answers. It records removals.
type votes struct {
	seen    []observed.Etcd // successive answers; the last one repeats
	asked   int
	removed []uint64
	via     [][]string // the hosts it was reached through
}

func (q *votes) Observe(context.Context) (observed.Etcd, error) {
	q.asked++
	return q.seen[min(q.asked, len(q.seen))-1], nil
}

func (q *votes) RemoveMember(_ context.Context, id uint64) error {
	q.removed = append(q.removed, id)
	return nil
}

func (q *votes) Close() error { return nil }

// removing returns a run on that etcd. It records the pauses, and its clock advances by them.
func removing(q *votes, paused *[]time.Duration) *Run {
	access := &etcd.Access{Via: []etcd.Endpoint{{ID: "1"}, {ID: "3"}}}
	now := rotatedAt
	return &Run{
		RunID: "run-1", Emit: func(Event) {}, Now: func() time.Time { return now }, Etcd: access,
		Hosts:       map[string]host.Host{},
		Unreachable: map[string]host.Host{},
		Plan:        plan.Plan{Hosts: map[string]string{"3": "cp-c"}},
		Connect: Connectors{Etcd: func(_ context.Context, a etcd.Access) (Etcd, error) {
			var via []string
			for _, e := range a.Via {
				via = append(via, e.ID)
			}
			q.via = append(q.via, via)
			return q, nil
		}},
		pause: func(ctx context.Context, d time.Duration) bool {
			*paused, now = append(*paused, d), now.Add(d)
			return ctx.Err() == nil
		},
	}
}

func removal(confirm bool) plan.Step {
	return plan.Step{
		ID:     "s",
		Host:   "3",
		Intent: step.With(step.RemoveEtcdParams{Member: "c", Death: step.Death{Peer: "3", Confirm: confirm}}),
	}
}

func TestADeadMemberIsRemovedAfterHalfAMinute(t *testing.T) {
	t.Parallel()
	q := &votes{seen: []observed.Etcd{voters(true, true, false)}}
	var paused []time.Duration
	if err := removing(q, &paused).removeMember(t.Context(), nil, removal(true)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{0xc}, q.removed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(slices.Repeat([]time.Duration{5 * time.Second}, 6), paused); diff != "" {
		t.Error(diff)
	}
	for _, via := range q.via {
		if diff := cmp.Diff([]string{"1"}, via); diff != "" {
			t.Errorf("etcd is asked through the host that leaves: %s", diff)
		}
	}
}

func TestAMemberIsRemovedWhereNoAPIServerRuns(t *testing.T) {
	t.Parallel()
	q := &votes{seen: []observed.Etcd{voters(true, true, false)}}
	var paused []time.Duration
	r := removing(q, &paused)
	r.Connect.API = func(cluster.Access) (API, error) { return nil, errors.New("no API server answers") }
	if err := r.runOnCluster(t.Context(), removal(false)); err != nil || len(q.removed) != 1 {
		t.Errorf("removed %d: %v", len(q.removed), err)
	}
}

func TestALivingMemberIsNotRemoved(t *testing.T) {
	t.Parallel()
	dead := voters(true, true, false)
	alone := voters(true, true, false)
	alone.Members[2].Version = "3.6.8" // it answers, and sees no leader
	stale := voters(true, false, false)
	stale.Problem = "no quorum answers"
	for name, c := range map[string]struct {
		seen   []observed.Etcd
		says   string
		living bool
	}{
		"at once":           {[]observed.Etcd{voters(true, true, true)}, "it answers", true},
		"at the third look": {[]observed.Etcd{dead, dead, voters(true, true, true)}, "it answers", true},
		"only once":         {[]observed.Etcd{dead, dead, voters(true, true, true), dead}, "it answers", true},
		"without a leader":  {[]observed.Etcd{alone}, "it answers", true},
		"no quorum":         {[]observed.Etcd{stale}, "no quorum answers", false},
		"the quorum would be lost now": {append(slices.Repeat([]observed.Etcd{dead}, 7), voters(true, false, false)),
			"must not leave now: without it 1 of 2 voters healthy, quorum 2", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, paused := &votes{seen: c.seen}, []time.Duration(nil)
			err := removing(q, &paused).removeMember(t.Context(), nil, removal(true))
			var living *LivingError
			if err == nil || !strings.Contains(err.Error(), c.says) || errors.As(err, &living) != c.living {
				t.Errorf("got %v", err)
			}
			if len(q.removed) > 0 {
				t.Error("it was removed")
			}
		})
	}
}

// A check without a result is repeated, as long as it leaves no gap.
func TestASlowEtcdIsAskedAgain(t *testing.T) {
	t.Parallel()
	dead, slow := voters(true, true, false), voters(true, false, false)
	slow.Problem = "no quorum answers"
	for name, c := range map[string]struct {
		seen    []observed.Etcd
		removed int
	}{
		"once":      {[]observed.Etcd{dead, slow, dead}, 1},
		"for good":  {[]observed.Etcd{dead, slow}, 0},
		"then life": {[]observed.Etcd{dead, slow, voters(true, true, true)}, 0},
	} {
		q, paused := &votes{seen: c.seen}, []time.Duration(nil)
		err := removing(q, &paused).removeMember(t.Context(), nil, removal(true))
		if len(q.removed) != c.removed || (err == nil) != (c.removed == 1) || len(paused) > 7 {
			t.Errorf("%s: removed %v after pauses of %v: %v", name, q.removed, paused, err)
		}
	}
}

// A run that stood still has not seen silence.
func TestASilenceHasNoGaps(t *testing.T) {
	t.Parallel()
	var is Silence
	look := func(after time.Duration) bool {
		at := rotatedAt
		if !is.Last.IsZero() {
			at = is.Last.Add(after)
		}
		is = is.Found(at, at.Add(time.Second))
		return is.Dead()
	}
	for _, c := range []struct {
		after time.Duration
		looks int // until it is dead
	}{{DeathEvery, 6}, {DeathGap, 2}} {
		is = Silence{}
		if look(0) {
			t.Error("one look is enough")
		}
		for n := 1; !look(c.after); n++ {
			if n == c.looks {
				t.Errorf("%s apart: it is not dead after %d looks", c.after, n)
				break
			}
		}
		for _, gap := range []time.Duration{DeathGap + time.Second, -time.Hour, time.Hour} {
			if before := is; look(gap) || is.Since.Equal(before.Since) {
				t.Errorf("after a gap of %s it is silent since %s", gap, is.Since)
			}
		}
	}
}

func TestAMemberThatIsAskedToLeaveLeavesAtOnce(t *testing.T) {
	t.Parallel()
	q, paused := &votes{seen: []observed.Etcd{voters(true, true, true)}}, []time.Duration(nil)
	if err := removing(q, &paused).removeMember(t.Context(), nil, removal(false)); err != nil || len(q.removed) != 1 ||
		len(paused) > 0 {
		t.Errorf("%v, removed %v, paused %v", err, q.removed, paused)
	}
	q = &votes{seen: []observed.Etcd{voters(true, true)}} // removed by an earlier run
	if err := removing(q, &paused).removeMember(t.Context(), nil, removal(true)); err != nil || len(q.removed) > 0 {
		t.Errorf("%v, removed %v", err, q.removed)
	}
}

// TestALearnerThatVotesByNowIsNotRemoved: a join continues on its host after its run has ended, even if another
// manifest calls its learner abandoned.
func TestALearnerThatVotesByNowIsNotRemoved(t *testing.T) {
	t.Parallel()
	learning := voters(true, true, false)
	learning.Members[2].Learner = true
	for name, c := range map[string]struct {
		seen    observed.Etcd
		removed int
	}{
		"it learns still":      {learning, 1},
		"it votes":             {voters(true, true, true), 0},
		"it votes, and is ill": {voters(true, true, false), 0},
	} {
		q, paused := &votes{seen: []observed.Etcd{c.seen}}, []time.Duration(nil)
		s := removal(false)
		params := step.ParamsOf[step.RemoveEtcdParams](s.Intent)
		params.Learner = true
		s.Intent = step.With(params)
		err := removing(q, &paused).removeMember(t.Context(), nil, s)
		var living *LivingError
		if len(q.removed) != c.removed || errors.As(err, &living) != (c.removed == 0) {
			t.Errorf("%s: removed %v, %v", name, q.removed, err)
		}
	}
}

func TestTheHostOfADeadMemberIsProbedToo(t *testing.T) {
	t.Parallel()
	silent := hostfake.Expect{Err: &host.Error{Class: host.Unreachable}, Times: -1}
	for name, c := range map[string]struct {
		absent, present *hostfake.Expect
		says            string
	}{
		"silent still":     {absent: &silent},
		"it answers again": {absent: &hostfake.Expect{Times: -1}, says: "host cp-c is alive: it answers again"},
		"it refuses the login": {absent: &hostfake.Expect{Err: &host.Error{Class: host.Auth}, Times: -1},
			says: "host cp-c is alive"},
		"empty, as it was": {present: &hostfake.Expect{Script: "/var/lib/etcd/member", Times: -1}},
		"etcd runs on it": {present: &hostfake.Expect{ExitCode: 3, Times: -1},
			says: "host cp-c is alive: it runs etcd"},
		"it was there, and hides": {present: &silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, paused := &votes{seen: []observed.Etcd{voters(true, true, false)}}, []time.Duration(nil)
			r := removing(q, &paused)
			if c.absent != nil {
				r.Unreachable["3"] = hostfake.New(t, "cp-c", *c.absent)
			} else {
				r.Hosts["3"] = hostfake.New(t, "cp-c", *c.present)
			}
			err := r.removeMember(t.Context(), nil, removal(true))
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if removed := len(q.removed) > 0; removed != (c.says == "") {
				t.Errorf("removed: %t", removed)
			}
		})
	}
}

// One sign of life is enough, however silent the host is before and after.
func TestAHostThatShowsLifeOnceIsNotDead(t *testing.T) {
	t.Parallel()
	silent := hostfake.Expect{Err: &host.Error{Class: host.Unreachable}}
	for name, c := range map[string]struct {
		life     hostfake.Expect
		answered bool // at plan time
	}{
		"it answers":           {hostfake.Expect{}, false},
		"it refuses the login": {hostfake.Expect{Err: &host.Error{Class: host.Auth}}, false},
		"etcd runs on it":      {hostfake.Expect{ExitCode: 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := silent, silent
			if c.answered {
				before, after = hostfake.Expect{}, hostfake.Expect{}
			}
			before.Times, after.Times = 2, -1
			q, paused := &votes{seen: []observed.Etcd{voters(true, true, false)}}, []time.Duration(nil)
			r := removing(q, &paused)
			h := hostfake.New(t, "cp-c", before, c.life, after)
			if c.answered {
				r.Hosts["3"] = h
			} else {
				r.Unreachable["3"] = h
			}
			err := r.removeMember(t.Context(), nil, removal(true))
			var living *LivingError
			if !errors.As(err, &living) || len(q.removed) > 0 {
				t.Errorf("removed %v: %v", q.removed, err)
			}
		})
	}
}

// nodes is an API with known silence of Nodes.
type nodes struct {
	API
	ready   bool
	deleted []string
}

func (n *nodes) WaitNodeSilent(context.Context, string) error {
	if n.ready {
		return context.DeadlineExceeded
	}
	return nil
}

func (n *nodes) DeleteNode(_ context.Context, node string) error {
	n.deleted = append(n.deleted, node)
	return nil
}

func TestANodeGoesOnlyWhenNoMachineLivesUnderItsName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ready, confirm, deleted bool
	}{"silent": {false, true, true}, "ready": {true, true, false}, "asked to leave": {true, false, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, paused := &nodes{ready: c.ready}, []time.Duration(nil)
			r := removing(&votes{}, &paused)
			r.Unreachable["3"] = hostfake.New(t, "w-1",
				hostfake.Expect{Err: &host.Error{Class: host.Unreachable}, Times: -1})
			err := r.deleteNode(t.Context(), api, plan.Step{Host: "3", Intent: step.Intent{
				Kind: step.DeleteNode, NodeName: "w-1",
				Params: step.DeleteNodeParams{Death: step.Death{Peer: "3", Confirm: c.confirm}},
			}})
			if (err == nil) != c.deleted || (len(api.deleted) > 0) != c.deleted {
				t.Errorf("%v, deleted %v", err, api.deleted)
			}
			if c.confirm && len(paused) != 6 {
				t.Errorf("its host was probed with pauses of %v", paused)
			}
		})
	}
}
