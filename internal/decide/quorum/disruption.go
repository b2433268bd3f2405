package quorum

import "kubeone/internal/model/observed"

// Disruption is what happens to a host's part in etcd.
type Disruption string

// The disruptions.
const (
	NoDisruption Disruption = ""
	Stop         Disruption = "stop" // its member does not answer for a while
	// StopHealthy is the same where the member is well, in an etcd with a quorum. Otherwise nothing is left to lose.
	StopHealthy Disruption = "stop healthy"
	Leave       Disruption = "leave" // its member is taken out for ever
	Wipe        Disruption = "wipe"  // the data on its disk goes; its member must have left
	// Purge deletes data that was kept when its member left. It is of use only if there is no quorum any more.
	Purge Disruption = "purge"
)

// Part is what a host has of etcd, as it was observed, whatever role the manifest gives the host.
type Part struct {
	Member string       // the ID of its member in etcd's list; "" if it has none there
	Data   observed.Tri // whether data of etcd is on its disk
}

// Any reports whether the host has, or may have, a part in etcd.
func (p Part) Any() bool { return p.Member != "" || p.Data != observed.No }

// May reports whether the disruption of a host with that part leaves etcd, as it is, its quorum and its data. It is the
// only judge of that: of a plan's steps when they are planned, and again, with etcd as it is then, when they begin.
func May(d Disruption, etcd observed.Etcd, part Part) Verdict {
	members := etcd.Members
	m, _ := Without(members, part.Member)
	switch {
	case d == NoDisruption, d != Purge && !part.Any():
		return Verdict{Safe: true}
	case d == StopHealthy && (m == nil || m.Healthy != observed.Yes || !Count(members).Holds()):
		return Verdict{Safe: true}
	case etcd.Reached != observed.Yes || len(members) == 0:
		return Verdict{Why: "etcd's members are not known"}
	case d == Leave && m == nil:
		return Verdict{Safe: true, Why: "it has left etcd"}
	case d == Leave:
		return SafeToRemove(members, part.Member)
	case d == Wipe && m != nil:
		return Verdict{Why: "etcd member " + m.Name + " (" + m.ID + ") has not left etcd"}
	case (d == Wipe || d == Purge) && !Count(members).Holds():
		return Verdict{Why: Count(members).String() + ": its data may be needed"}
	case d == Wipe, d == Purge:
		return Verdict{Safe: true, Why: Count(members).String()}
	case m == nil:
		return Verdict{Why: "etcd has no member of the host"}
	}
	return SafeToStop(members, part.Member)
}
