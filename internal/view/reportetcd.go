package view

import (
	"slices"

	"kubeone/internal/decide/quorum"
	"kubeone/internal/model/observed"
)

// EtcdState is what a control-plane host's etcd member is.
type EtcdState string

// The states of members. Leader and Voter are healthy.
const (
	EtcdLeader    EtcdState = "leader"
	EtcdVoter     EtcdState = "voter"
	EtcdLearner   EtcdState = "learner"
	EtcdUnhealthy EtcdState = "unhealthy"
	EtcdNone      EtcdState = "none"
	EtcdUnknown   EtcdState = "unknown"
)

// EtcdReport is etcd's members and the arithmetic of their quorum. The numbers are 0 when the members are not known.
type EtcdReport struct {
	Reached  observed.Tri   `json:"reached"`
	Problem  string         `json:"problem,omitempty"`
	Voters   int            `json:"voters"`
	Healthy  int            `json:"healthy"` // voters known to be healthy
	Learners int            `json:"learners,omitempty"`
	Quorum   int            `json:"quorum"`  // how many voters must agree
	Holds    bool           `json:"holds"`   // the healthy voters are a quorum
	MayFail  int            `json:"mayFail"` // how many healthy voters may fail before the quorum is lost
	Members  []MemberReport `json:"members"`
	// Orphans are alarms of members that have left. They count like any other.
	Orphans []observed.Alarm `json:"orphanedAlarms,omitempty"`
}

// MemberReport is one member.
type MemberReport struct {
	ID      string    `json:"id"` // hex
	Name    string    `json:"name,omitempty"`
	Host    string    `json:"host,omitempty"` // name of the manifest's host; empty when the manifest has none
	State   EtcdState `json:"state"`
	Version string    `json:"version,omitempty"`
	DBSize  int64     `json:"dbSize,omitempty"` // bytes
	Alarms  []string  `json:"alarms,omitempty"`
}

func (st StatusInput) etcd() EtcdReport {
	e := st.World.Etcd
	r := EtcdReport{Reached: e.Reached, Problem: e.Problem, Members: []MemberReport{}, Orphans: e.Orphans}
	if e.Reached != observed.Yes {
		return r
	}
	tally := quorum.Count(e.Members)
	r.Voters, r.Healthy, r.Learners = tally.Voters, tally.Alive, tally.Learners
	r.Quorum, r.Holds = quorum.Of(tally.Voters), tally.Holds()
	r.MayFail = max(tally.Alive-r.Quorum, 0)
	for _, m := range e.Members {
		r.Members = append(r.Members, MemberReport{
			ID: m.ID, Name: m.Name, Host: st.hostOf(m), State: memberState(m), Version: m.Version, DBSize: m.DBSize,
			Alarms: m.Alarms,
		})
	}
	return r
}

func (st StatusInput) hostOf(m observed.Member) string {
	for _, h := range st.Want.ControlPlane {
		if st.Decision.Hosts[h.ID].Etcd == m.ID {
			return st.name(h.ID)
		}
	}
	return ""
}

func memberState(m observed.Member) EtcdState {
	switch {
	case m.Learner:
		return EtcdLearner
	case m.Healthy == observed.Unknown:
		return EtcdUnknown
	case m.Healthy == observed.No || len(m.Alarms) > 0:
		return EtcdUnhealthy
	case m.Leader:
		return EtcdLeader
	}
	return EtcdVoter
}

// memberOf is the state of a host's member: as etcd says it, else, where etcd's list is not known, as the host does.
func (st StatusInput) memberOf(id string, seen observed.Host) EtcdState {
	i := slices.IndexFunc(st.World.Etcd.Members, func(m observed.Member) bool { return m.ID == id })
	switch {
	case i >= 0:
		return memberState(st.World.Etcd.Members[i])
	case st.World.Etcd.Reached == observed.Yes, seen.EtcdData == observed.No:
		return EtcdNone
	case seen.EtcdHealth == observed.Yes:
		return EtcdVoter
	case seen.EtcdHealth == observed.No:
		return EtcdUnhealthy
	}
	return EtcdUnknown
}
