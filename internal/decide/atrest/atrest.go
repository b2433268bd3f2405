// Package atrest says in which phase the encryption of Secrets in etcd is, and what comes next, so that nobody ever
// stores what somebody cannot read. It is a pure function of the configurations of all control-plane hosts.
//
// A configuration is a list of providers, by their names: the first one writes, all of them read. To change who writes,
// every host first learns to read what the new one will write (Learn); when all of them run with that, the new one
// becomes the first (Use); when it is so everywhere, every Secret is written again, and the other providers are
// dropped (Forget), after a look at etcd's own bytes. A phase begins when the one before has ended on all hosts.
package atrest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/text/set"
)

// Phase is a part of a change of who writes.
type Phase string

// The phases.
const (
	Settled Phase = ""       // nothing is to be done
	Learn   Phase = "learn"  // hosts are told of what they cannot read yet
	Use     Phase = "use"    // the new one writes
	Forget  Phase = "forget" // every Secret is written again, and the others are dropped
	// Give is no phase of a change: a host gets again the keys that it has lost.
	Give Phase = "give"
)

// Host is what a control-plane host has.
type Host struct {
	ID      string
	Running [][]string // what its API servers run with; more than one for a moment
	Next    []string   // what the next one starts with
	Same    bool       // what runs is what starts next, to the last byte
}

// Want is what is desired of Secrets.
type Want struct {
	Encrypted bool
	Rotate    bool // by a new key, once
}

// Decision is the next phase.
type Decision struct {
	Phase  Phase
	Writer string // who is to write in the end: the name of a key, or observed.Identity
	// New says that the writer's key is still to be made.
	New bool
	// Hosts are those to be changed, in order, and Providers what each is to have, by ID: nil is no configuration.
	Hosts     []string
	Providers map[string][]string
}

// Of returns a host with that encryption; nil is that of a host without any.
func Of(id string, e *observed.Encryption) Host {
	if e == nil {
		e = &observed.Encryption{Running: []observed.EncryptionConfig{{}}}
	}
	h := Host{ID: id, Next: e.Next.Names(), Same: e.Settled()}
	for _, c := range e.Running {
		h.Running = append(h.Running, c.Names())
	}
	return h
}

// Decide finds the next phase. Every control-plane host must be among the hosts.
func Decide(hosts []Host, want Want) Decision {
	d := Decision{Writer: observed.Identity}
	known := knownKeys(hosts)
	if want.Encrypted {
		d.Writer, d.New = chooseWriter(known)
		if want.Rotate && !d.New && haveOnly(hosts, d.Writer) {
			d.Writer, d.New = keyName(keyNumber(d.Writer)+1), true
		}
	}
	if haveOnly(hosts, d.Writer) {
		return d
	}
	all := set.Union(known, []string{d.Writer})
	switch written := writesEverywhere(hosts, d.Writer); {
	case written:
		d.Phase = Forget
		d.fillHosts(hosts, func(Host) []string { return []string{d.Writer} })
	case allHosts(hosts, func(h Host) bool { return h.Same && containsAll(h.Next, all) }):
		d.Phase = Use
		d.fillHosts(hosts, func(h Host) []string { return set.Union([]string{d.Writer}, h.Next) })
	default:
		d.Phase = Learn
		d.fillHosts(hosts, func(h Host) []string { return set.Union(h.Next, all) })
	}
	return d
}

// fillHosts reports what the hosts are to have that do not have it.
func (d *Decision) fillHosts(hosts []Host, of func(Host) []string) {
	d.Providers = map[string][]string{}
	for _, h := range hosts {
		wanted := of(h)
		if h.Same && slices.Equal(h.Next, wanted) {
			continue
		}
		if slices.Equal(wanted, []string{observed.Identity}) {
			wanted = nil
		}
		d.Hosts = append(d.Hosts, h.ID)
		d.Providers[h.ID] = wanted
	}
}

// Join is what a host is to have that joins a cluster, or that has lost its own: what the first of the others starts
// with, and all that any other can read, so that it can read all that is stored and writes what all can read. It is nil
// where nothing is encrypted.
func Join(others []Host) []string {
	if len(others) == 0 {
		return nil
	}
	out := set.Union(others[0].Next, knownKeys(others))
	if slices.Equal(out, []string{observed.Identity}) {
		return nil
	}
	return out
}

// haveOnly reports whether all hosts have that one alone.
func haveOnly(hosts []Host, writer string) bool {
	return allHosts(hosts, func(h Host) bool { return h.Same && slices.Equal(h.Next, []string{writer}) })
}

// writesEverywhere reports whether that one writes on all hosts, now and after a restart.
func writesEverywhere(hosts []Host, writer string) bool {
	return allHosts(hosts, func(h Host) bool { return h.Same && len(h.Next) > 0 && h.Next[0] == writer })
}

func allHosts(hosts []Host, is func(Host) bool) bool {
	return !slices.ContainsFunc(hosts, func(h Host) bool { return !is(h) })
}

func containsAll(have, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(have, name) })
}

// knownKeys returns all that any host knows of, in order.
func knownKeys(hosts []Host) []string {
	var out []string
	for _, h := range hosts {
		out = set.Union(out, h.Next)
	}
	for _, h := range hosts {
		for _, running := range h.Running {
			out = set.Union(out, running)
		}
	}
	return out
}

// chooseWriter returns the newest key, or, if there is none, the first one that is to be made.
func chooseWriter(known []string) (name string, made bool) {
	best := ""
	for _, name := range known {
		if name != observed.Identity && (best == "" || keyNumber(name) > keyNumber(best)) {
			best = name
		}
	}
	if best == "" {
		return FirstKey, true
	}
	return best, false
}

// keyPrefix is before the number of a key.
const keyPrefix = "kubeone-"

// FirstKey is the name of the first key that a cluster has.
const FirstKey = keyPrefix + "1"

// keyName returns the name of the key of that number.
func keyName(n int) string { return fmt.Sprintf("%s%d", keyPrefix, n) }

// keyNumber returns the number of a key of ours; 0 of another one.
func keyNumber(name string) int {
	digits, ours := strings.CutPrefix(name, keyPrefix)
	n, err := strconv.Atoi(digits)
	if !ours || err != nil {
		return 0
	}
	return n
}
