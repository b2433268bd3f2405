package quorum

import "kubeone/internal/model/observed"

// Disruption is the effect of a step on a host's part in etcd.
type Disruption string

// The disruptions.
const (
	NoDisruption Disruption = ""
	Stop         Disruption = "stop" // its member does not answer for a while
	// StopHealthy is Stop, allowed only if the member is healthy in an etcd with a quorum. Otherwise there is nothing
	// to lose.
	StopHealthy Disruption = "stop healthy"
	Leave       Disruption = "leave" // its member is removed permanently
	Wipe        Disruption = "wipe"  // the data on its disk is deleted; its member must have left
	// Purge deletes data that was kept when its member left. That data is useful only if there is no quorum left.
	Purge Disruption = "purge"
)

// Part is what a host has of etcd, as observed, whatever its role in the manifest.
type Part struct {
	Member string       // the ID of its member in the etcd member list; "" if there is none
	Data   observed.Tri // whether its disk has etcd data
}

// Any reports whether the host has, or may have, a part in etcd.
func (p Part) Any() bool { return p.Member != "" || p.Data != observed.No }

// Check reports whether the disruption preserves etcd quorum and data. Every step is checked with it, when it is
// planned and again when it begins.
func Check(d Disruption, etcd observed.Etcd, part Part) Verdict {
	members := etcd.Members
	m, _ := Without(members, part.Member)
	switch {
	case d == NoDisruption, d != Purge && !part.Any():
		return Verdict{Safe: true}
	case d == StopHealthy && (m == nil || m.Healthy != observed.Yes || !Count(members).Holds()):
		return Verdict{Safe: true}
	case etcd.Reached != observed.Yes || len(members) == 0:
		return Verdict{Why: "the etcd members are not known"}
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
