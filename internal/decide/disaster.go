package decide

import (
	"fmt"
	"slices"

	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/quorum"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
)

// disaster is the procedure when etcd has no quorum and stopped units are not the reason: first what may bring it back
// by itself, and only then the recovery.
func (v *view) disaster() []problem.Instruction {
	if fenced := names(v.controlPlane(), (*seen).fenced); fenced != "" {
		return []problem.Instruction{{Reason: "a recovery has not ended: it has stopped etcd on " + fenced, Steps: []string{
			"Run the same kubeone recover command again: it goes on where it ended. What it moved aside is in /var/lib/kubeone-old on each host.",
		}}}
	}
	var steps []string
	if s := v.bringBack(); s != "" {
		steps = append(steps, s)
	}
	if data := names(v.controlPlane(), (*seen).holdsData); data != "" {
		steps = append(steps, v.withData(data)...)
	} else {
		steps = append(steps, v.withoutData()...)
	}
	_, why := v.askQuorum()
	return []problem.Instruction{{Reason: "etcd has lost its quorum: " + why, Steps: steps}}
}

// bringBack names the hosts that may still hold living members, and how many of them are enough. A member that merely waits
// for the others needs nothing itself.
func (v *view) bringBack() string {
	ill := func(s *seen) bool {
		return (s.silent() || s.joined()) && s.is.EtcdData != observed.No && s.is.EtcdHealth != observed.Yes && v.vote(s) != observed.Yes && !s.waits()
	}
	back := having(v.controlPlane(), ill)
	short := quorum.Of(v.etcd.tally.Voters) - v.etcd.tally.Alive - len(having(v.controlPlane(), (*seen).waits))
	if short <= 0 || len(back) < short {
		return ""
	}
	return fmt.Sprintf("Bring back %d of %s: start the machine, mend its network or disk, start its units. Then etcd has its quorum again, no data is lost, and kubeone apply does the rest. Only if that is impossible, go on.",
		short, names(v.controlPlane(), ill))
}

// withData is the way back from what a control-plane host still has.
func (v *view) withData(data string) []string {
	return []string{
		"Delete no host, empty no /var/lib/etcd and run neither kubeadm reset nor kubeone reset on " + data + ": what they hold may be all there is.",
		"Run " + v.command("surviving-member") + ": it shows a plan, asks, stops etcd everywhere, brings the cluster back from the data of " + data + " and lets the other control-plane hosts join again." + v.destroyed(),
		"If what they hold is damaged, use a copy instead: " + v.command("BACKUP --identity KEYFILE") + ", or --from SNAPSHOT.",
	}
}

// withoutData is the way back from a copy.
func (v *view) withoutData() []string {
	return []string{
		"No control-plane host that answered holds etcd data. Find the newest backup, and the private key of one of its recipients.",
		"Run " + v.command("BACKUP --identity KEYFILE") + ": it shows a plan, asks, and makes the cluster anew from the backup, with the same CAs and service-account keys, so that workers find it again." + v.destroyed(),
		"Without a backup the cluster cannot be restored. If all that ran in it may be lost, run kubeone reset on every host and then kubeone apply.",
	}
}

// command is the line to type, with every host that must be confirmed to be gone.
func (v *view) command(from string) string {
	line := "kubeone recover -m MANIFEST --from " + from
	for i := range v.controlPlane() {
		if s := &v.hosts[i]; s.Condition == condition.Unreachable {
			line += " --confirm-destroyed " + s.name()
		}
	}
	return line
}

// destroyed says what the flag of that name means; empty where it is not needed.
func (v *view) destroyed() string {
	if gone := names(v.controlPlane(), func(s *seen) bool { return s.Condition == condition.Unreachable }); gone != "" {
		return " Confirm a host as destroyed only when its machine is off for good or deleted: one that is merely cut off may still be serving."
	}
	return ""
}

// Recovery is whether a cluster is to be brought back from a copy of its data.
type Recovery struct {
	// Lost says that etcd has no quorum and that starting what is stopped does not bring it back, or that a recovery has
	// begun and not ended.
	Lost  bool
	Why   string                          // the arithmetic, in words
	Unfit []problem.Problem               // why nothing can be done at all, whatever is lost
	Hosts map[string]condition.Assessment // by host ID
}

// AssessRecovery answers the questions of a recovery: whether the quorum is lost, and what speaks against doing anything.
func AssessRecovery(in Input) Recovery {
	v := look(in)
	event, why := v.askQuorum()
	return Recovery{Lost: event == fsm.OnLost, Why: why, Unfit: v.unfit, Hosts: v.assessments()}
}

// fenced reports whether a recovery stopped etcd on the host, and nobody finished it there.
func (s *seen) fenced() bool {
	return s.is.Marker != nil && s.is.Marker.Fenced != "" && !s.is.Marker.Complete
}

// waits reports whether all of the host's member is there and runs, as far as the host can say, and it only has no leader.
func (s *seen) waits() bool {
	return s.is.Kubelet.Active && s.is.EtcdData == observed.Yes && s.is.EtcdLost == "" && s.is.EtcdHealth == observed.No &&
		slices.Contains(s.is.Manifests, "etcd")
}

func (s *seen) holdsData() bool { return s.is.EtcdData == observed.Yes }

// recovering names the hosts of a recovery that has not brought a control plane back yet; empty where there is none. Once
// one has, its fenced hosts are like hosts that have not joined.
func (v *view) recovering() string {
	if v.begun() {
		return ""
	}
	return names(v.controlPlane(), (*seen).fenced)
}
