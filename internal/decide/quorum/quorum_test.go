package quorum

import (
	"fmt"
	"reflect"
	"testing"

	"kubeone/internal/model/observed"
)

// smallestMajority is the oracle: it returns the smallest number such that two groups of it cannot exist side by side.
func smallestMajority(n int) int {
	for q := 1; ; q++ {
		if 2*q > n {
			return q
		}
	}
}

// forEachMemberList calls f with every list of up to n members: healthy, dead, unknown voters, and learners.
func forEachMemberList(n int, f func([]observed.Member)) {
	var grow func([]observed.Member)
	grow = func(list []observed.Member) {
		f(list)
		if len(list) == n {
			return
		}
		for _, m := range []observed.Member{
			{Healthy: observed.Yes},
			{Healthy: observed.No},
			{Healthy: observed.Unknown},
			{Healthy: observed.Yes, Learner: true},
		} {
			m.ID = fmt.Sprint(len(list))
			grow(append(list[:len(list):len(list)], m))
		}
	}
	grow(nil)
}

func TestQuorumAgreesWithOracle(t *testing.T) {
	t.Parallel()
	for n := range 1000 {
		if got, want := Of(n), smallestMajority(n); got != want {
			t.Errorf("Quorum(%d) = %d, want %d", n, got, want)
		}
	}
}

// dumbCount counts in the simplest way how many members vote, and how many are known to answer.
func dumbCount(list []observed.Member, except string) (voters, alive int) {
	for _, m := range list {
		if m.ID == except || m.Learner {
			continue
		}
		voters++
		if m.Healthy == observed.Yes {
			alive++
		}
	}
	return voters, alive
}

func TestSafeToRemoveAndStopAgreeWithOracle(t *testing.T) {
	t.Parallel()
	cases := 0
	forEachMemberList(6, func(list []observed.Member) {
		for _, m := range list {
			cases++
			voters, alive := dumbCount(list, "none")
			left, alone := dumbCount(list, m.ID)
			remove := voters > 0 && left > 0 && alive >= smallestMajority(voters) && alone >= smallestMajority(left)
			if got := SafeToRemove(list, m.ID); got.Safe != remove {
				t.Errorf("remove %s of %v: %+v, want %t", m.ID, list, got, remove)
			}
			others := m.Learner || alone >= smallestMajority(voters)
			outage := !others && voters <= 2 && alone == left
			if got := SafeToStop(list, m.ID); got.Safe != (others || outage) || got.Outage != outage {
				t.Errorf("stop %s of %v: %+v, want safe %t, outage %t", m.ID, list, got, others || outage, outage)
			}
		}
	})
	if cases < 10_000 {
		t.Errorf("only %d cases", cases)
	}
}

func TestQuorumFiguresOfUsualClusters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ voters, dead, tolerated int }{
		{1, 0, 0}, {3, 0, 1}, {3, 1, 0}, {5, 0, 2}, {5, 1, 1}, {5, 2, 0}, {7, 0, 3},
	} {
		tally := Tally{Voters: tt.voters, Alive: tt.voters - tt.dead}
		n := 0
		for tally.Alive--; tally.Holds(); tally.Alive-- {
			n++
		}
		if n != tt.tolerated {
			t.Errorf("%d voters of which %d are dead tolerate %d more, want %d", tt.voters, tt.dead, n, tt.tolerated)
		}
	}
}

func TestUnknownMemberIsNeverSafe(t *testing.T) {
	t.Parallel()
	list := []observed.Member{{ID: "1", Healthy: observed.Yes}}
	if v := SafeToRemove(list, "2"); v.Safe || v.Why != "etcd does not list member 2" {
		t.Errorf("remove: %+v", v)
	}
	if v := SafeToStop(list, "2"); v.Safe || v.Why != "etcd does not list member 2" {
		t.Errorf("stop: %+v", v)
	}
}

// TestCheckAgreesWithCounting checks for every list and member, healthy or not, whether each disruption is allowed, and
// compares that with what is left afterwards.
func TestCheckAgreesWithCounting(t *testing.T) {
	t.Parallel()
	forEachMemberList(5, func(list []observed.Member) {
		etcd := observed.Etcd{Reached: observed.Yes, Members: list}
		voters, alive := dumbCount(list, "none")
		holds := voters > 0 && alive >= smallestMajority(voters)
		for _, m := range list {
			part := Part{Member: m.ID, Data: observed.Unknown}
			left, alone := dumbCount(list, m.ID)
			stops := m.Learner || alone >= smallestMajority(voters) || voters <= 2 && alone == left
			for d, want := range map[Disruption]bool{
				NoDisruption: true,
				Stop:         stops,
				StopHealthy:  stops || m.Healthy != observed.Yes || !holds,
				Leave:        holds && left > 0 && alone >= smallestMajority(left),
				Wipe:         false,
				Purge:        holds,
			} {
				if got := Check(d, etcd, part); got.Safe != want {
					t.Errorf("%s %s of %v: %+v, want %t", d, m.ID, list, got, want)
				}
			}
		}
		for d, want := range map[Disruption]bool{
			Wipe: holds, Purge: holds, Stop: false, StopHealthy: true, Leave: len(list) > 0,
		} {
			if got := Check(d, etcd, Part{Data: observed.Yes}); got.Safe != want {
				t.Errorf("%s of one that is not in %v: %+v, want %t", d, list, got, want)
			}
		}
	})
}

func TestAccountsOfMembersAreMerged(t *testing.T) {
	t.Parallel()
	got := Merged([]observed.Member{
		{ID: "2", Learner: true}, {ID: "1", Name: "cp-1"}, {ID: "2", Name: "cp-2"}, {ID: "2", Learner: true},
		{ID: "3", Learner: true}, {ID: "1"},
	})
	want := []observed.Member{{ID: "2", Name: "cp-2"}, {ID: "1", Name: "cp-1"}, {ID: "3", Learner: true}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestMayWhereMembersAreNotKnown(t *testing.T) {
	t.Parallel()
	for _, part := range []Part{{Data: observed.Yes}, {Data: observed.Unknown}, {Member: "1", Data: observed.No}} {
		for d, want := range map[Disruption]bool{
			NoDisruption: true, StopHealthy: true, Stop: false, Leave: false, Wipe: false,
		} {
			if got := Check(d, observed.Etcd{}, part); got.Safe != want {
				t.Errorf("%s of %+v: %+v, want %t", d, part, got, want)
			}
		}
	}
	if got := Check(Wipe, observed.Etcd{}, Part{Data: observed.No}); !got.Safe {
		t.Errorf("a host without a part in etcd: %+v", got)
	}
	if got := Check(Purge, observed.Etcd{}, Part{Data: observed.No}); got.Safe {
		t.Errorf("what a bare host has kept may be all that there is: %+v", got)
	}
}
