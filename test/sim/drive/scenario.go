// Package drive runs the real decide, plan, locks and apply on a simulated world with injected faults: probe, plan,
// approve, lock, probe again, compare, carry out, probe until the world matches. It replaces the engine around apply,
// and provides hosts that know apply's commands, an API and an etcd.
//
// A Scenario determines the course of events. It runs in a bubble of testing/synctest with a virtual clock.
package drive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Scenario is one course of events.
type Scenario struct {
	Seed          uint64
	ControlPlanes int
	Workers       int
	Pool          int // hosts for Machines, outside the manifest
	Start         Start
	Faults        []Fault
	// Off is a guard to disable, for tests that must find the violation.
	Off Guard
}

// Start is the world at the start of the first run.
type Start string

// The starts.
const (
	Bare       Start = "bare"        // nothing is installed
	Healthy    Start = "healthy"     // everything matches
	OlderPatch Start = "older-patch" // a cluster of an older patch release
	OlderMinor Start = "older-minor" // a cluster of the minor before
	Missing    Start = "missing"     // the last control-plane host and the last worker have not joined
	Surplus    Start = "surplus"     // one more control-plane host than the manifest has
	Elsewhere  Start = "elsewhere"   // everything matches except the API's endpoint
)

// Starts returns all starts.
func Starts() []Start {
	return []Start{Bare, Healthy, OlderPatch, OlderMinor, Missing, Surplus, Elsewhere}
}

// Kind is a kind of fault.
type Kind string

// The faults. Those that last end after Fault.For moments.
const (
	LostBefore Kind = "lost-before" // the connection breaks before the next command on the host
	LostDuring Kind = "lost-during" // while it runs: the command continues
	LostAfter  Kind = "lost-after"  // after it has ended, before its operator knows
	Cut        Kind = "cut"         // no operator reaches the host; lasts
	Split      Kind = "split"       // no other host reaches the host; lasts
	Halved     Kind = "halved"      // hosts up to this one reach only each other, and the rest likewise; lasts
	Dead       Kind = "dead"        // the machine is off; lasts, and then it starts
	Replaced   Kind = "replaced"    // an empty machine takes its place
	Slow       Kind = "slow"        // its steps and its etcd are slow; lasts
	Full       Kind = "full"        // its disk is full; lasts
	Unready    Kind = "unready"     // its kubelet reports that it is not ready; lasts
	FailOnce   Kind = "fail-once"   // the next phase of a step on it fails
	FailAlways Kind = "fail-always" // every phase fails; lasts
	Stopped    Kind = "stopped"     // its kubelet stops
	Crashed    Kind = "crashed"     // containerd and kubelet stop
	DataLost   Kind = "data-lost"   // its etcd data is destroyed
	Manifest   Kind = "manifest"    // its API server's manifest is deleted
	Expired    Kind = "expired"     // its certificates have expired
	ConfLost   Kind = "conf-lost"   // its kubelet.conf is deleted
	KeysLost   Kind = "keys-lost"   // its keys for Secrets are deleted
	// Its marker, which contains owner and role of the host, is deleted; lasts until a person restores it. Only
	// RandomRoles has it.
	MarkerLost Kind = "marker-lost"
	Edited     Kind = "edited"    // its kubelet's configuration is edited
	Collected  Kind = "collected" // unused images are removed
	ByHand     Kind = "by-hand"   // a person cordons its Node
	Early      Kind = "early"     // probing takes time: the host answers at the start, all else at the end; lasts
	Late       Kind = "late"      // probing takes time: the host answers at the end, all else at the start; lasts
	Severed    Kind = "severed"   // some operators reach the hosts up to this one, the others only the rest; lasts
	Killed     Kind = "killed"    // the operator's program is killed
	Paused     Kind = "paused"    // it is suspended, like a laptop that sleeps; lasts
	Stop       Kind = "stop"      // Ctrl-C
	Second     Kind = "second"    // a second operator applies
	Forced     Kind = "forced"    // a second operator applies with --force-unlock
	Alone      Kind = "alone"     // a run works on one worker alone, like a controller
	Moved      Kind = "moved"     // a person changes the manifest's endpoint, or reverts it, and applies
	// A second operator runs another command, about the host if it has a subject.
	Limited     Kind = "limited"       // apply --host; with an odd For, also the next worker
	Upgraded    Kind = "force-upgrade" // apply --force-upgrade
	Reset       Kind = "reset"         // reset --host; with an odd For, with --purge
	Remove      Kind = "remove"        // node remove
	RemoveGone  Kind = "remove-gone"   // node remove --unreachable
	Replace     Kind = "replace"       // node replace
	ReplaceGone Kind = "replace-gone"  // node replace --unreachable
	Recover     Kind = "recover"       // recover --from surviving-member, with --host if For is even
	// A person changes the manifest, and a second operator applies it while others use the former one.
	Reordered  Kind = "reordered"  // its hosts have another order
	Swapped    Kind = "swapped"    // the host and the next one swap addresses
	Renamed    Kind = "renamed"    // the host has another hostname
	RoleOther  Kind = "role"       // the host is in the other list
	LeftOut    Kind = "left-out"   // the host is left out
	PutBack    Kind = "put-back"   // left-out hosts are back, at the end
	Versions   Kind = "versions"   // a worker has its own version
	Settings   Kind = "settings"   // its hosts have other settings, sometimes ones with which no component starts
	Encryption Kind = "encryption" // Secrets are encrypted, or with an even For no longer
	Rotated    Kind = "rotated"    // apply --rotate-encryption-key, with encryption in the manifest
	// certificates rotate-ca, or with an even For the end of a begun rotation. Random schedules do not have it.
	RotatedCA Kind = "rotated-ca"
	Hooks     Kind = "hooks"  // hooks before and after every activity, or with an even For none
	OwnAddons Kind = "addons" // other addons of the operator's own, as ownAddons has them, or none; RandomAddons has it
	// Controllers work on hosts of a pool outside the manifest.
	Claimed  Kind = "claimed"  // a Machine requests the pool's host, or the Machine that has it another kubelet
	Returned Kind = "returned" // the Machine of the pool's host is deleted
	Mistaken Kind = "mistaken" // a Machine requests a worker of the manifest
	TakenIn  Kind = "taken-in" // a person adds the pool's host to the manifest, and applies
)

// Kinds returns the kinds of faults in random schedules. Hooks and the operator's own addons have schedules of their
// own.
func Kinds() []Kind {
	return []Kind{
		LostBefore, LostDuring, LostAfter, Cut, Split, Halved, Dead, Replaced, Slow, Full, FailOnce, FailAlways,
		Stopped, Crashed, DataLost, Manifest, Expired, ConfLost, Edited, Collected, ByHand, Early, Late, Severed,
		Killed, Paused, Stop, Second, Forced, Alone, Moved, Limited, Upgraded, Reset, Remove, RemoveGone,
		Replace, ReplaceGone, Recover, Reordered, Swapped, Renamed, RoleOther, LeftOut, PutBack, Versions,
		Settings, Encryption, Rotated, KeysLost, Unready,
	}
}

// MachineKinds returns the kinds about Machines, which only scenarios with a pool have.
func MachineKinds() []Kind { return []Kind{Claimed, Returned, Mistaken, TakenIn} }

// ofMachine reports whether the fault concerns a Machine.
func (k Kind) ofMachine() bool { return slices.Contains(MachineKinds(), k) }

// isLasting reports whether faults of the kind have an end.
func (k Kind) isLasting() bool {
	switch k {
	case Cut, Split, Halved, Dead, Slow, Full, Unready, FailAlways, Paused, Severed, Early, Late, MarkerLost:
		return true
	}
	return false
}

// ofOperator reports whether the fault concerns an operator and not a host.
func (k Kind) ofOperator() bool {
	switch k {
	case Killed, Paused, Stop, Second, Forced, Alone, Moved:
		return true
	}
	return k.isCommand() || k.isEdit() || k.ofMachine()
}

// isCommand reports whether a second operator runs another command than apply.
func (k Kind) isCommand() bool {
	switch k {
	case Limited, Upgraded, Reset, Remove, RemoveGone, Replace, ReplaceGone, Recover, Rotated, RotatedCA:
		return true
	}
	return false
}

// isEdit reports whether a person changes the manifest.
func (k Kind) isEdit() bool {
	switch k {
	case Reordered, Swapped, Renamed, RoleOther, LeftOut, PutBack, Versions, Settings, Encryption, Hooks, OwnAddons:
		return true
	}
	return false
}

// Fault is one fault.
type Fault struct {
	At   int // moment since the start
	Kind Kind
	Host int // index, control plane first
	For  int // duration in moments
}

// String returns the form that ParseFault reads: "12:cut:3:40".
func (f Fault) String() string { return fmt.Sprintf("%d:%s:%d:%d", f.At, f.Kind, f.Host, f.For) }

// ParseFault reads a fault.
func ParseFault(text string) (Fault, error) {
	p := strings.Split(text, ":")
	if len(p) != 4 {
		return Fault{}, fmt.Errorf("%q is not MOMENT:KIND:HOST:FOR", text)
	}
	at, err1 := strconv.Atoi(p[0])
	host, err2 := strconv.Atoi(p[2])
	lasts, err3 := strconv.Atoi(p[3])
	if err1 != nil || err2 != nil || err3 != nil {
		return Fault{}, fmt.Errorf("%q: moment, host and duration are numbers", text)
	}
	return Fault{At: at, Kind: Kind(p[1]), Host: host, For: lasts}, nil
}

// String returns the form that Parse and `go test ./test/sim -run Replay -replay` read.
func (s Scenario) String() string {
	faults := make([]string, len(s.Faults))
	for i, f := range s.Faults {
		faults[i] = f.String()
	}
	text := fmt.Sprintf("seed=%d hosts=%d+%d start=%s faults=%s", s.Seed, s.ControlPlanes, s.Workers, s.Start,
		strings.Join(faults, ","))
	if s.Pool > 0 {
		text += " pool=" + strconv.Itoa(s.Pool)
	}
	if s.Off != "" {
		text += " off=" + string(s.Off)
	}
	return text
}

// Parse reads a scenario.
func Parse(text string) (Scenario, error) {
	var s Scenario
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "seed":
			s.Seed, err = strconv.ParseUint(value, 10, 64)
		case "hosts":
			_, err = fmt.Sscanf(value, "%d+%d", &s.ControlPlanes, &s.Workers)
		case "pool":
			s.Pool, err = strconv.Atoi(value)
		case "start":
			s.Start = Start(value)
		case "off":
			s.Off = Guard(value)
		case "faults":
			s.Faults, err = parseFaults(value)
		default:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return s, fmt.Errorf("scenario %q: %w", text, err)
		}
	}
	if s.ControlPlanes < 1 || s.Start == "" {
		return s, fmt.Errorf("scenario %q: it needs hosts and a start", text)
	}
	return s, nil
}

func parseFaults(text string) ([]Fault, error) {
	if text == "" {
		return nil, nil
	}
	var out []Fault
	for _, one := range strings.Split(text, ",") {
		f, err := ParseFault(one)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}
