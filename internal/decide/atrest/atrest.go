// Package atrest determines the next phase of a change to the encryption of Secrets in etcd, such that every API server
// can read what any other stores. It is a pure function of the configurations of all control-plane hosts.
//
// A configuration is a list of providers, by their names: the first one writes, all of them read. To change the writer,
// every host first learns to read what the new one will write (Learn). When all hosts run with that, the new one
// becomes the first (Use). When it is first everywhere, every Secret is written again and the other providers are
// dropped (Forget), after a check of etcd's own bytes. A phase begins when the previous one has ended on all hosts.
package atrest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/text/set"
)

// Phase is a part of a change of the writer.
type Phase string

// The phases.
const (
	Settled Phase = ""       // nothing to do
	Learn   Phase = "learn"  // hosts get the keys that they cannot read yet
	Use     Phase = "use"    // the new provider writes
	Forget  Phase = "forget" // every Secret is written again, and the other providers are dropped
	// Give is not a phase of a change: a host that lost its keys gets them again.
	Give Phase = "give"
)

// Host holds the encryption configurations of a control-plane host.
type Host struct {
	ID      string
	Running [][]string // what its API servers run with; briefly more than one
	Next    []string   // what the next one will start with
	Same    bool       // the running and the next configuration are equal, byte for byte
}

// Want is the desired encryption of Secrets.
type Want struct {
	Encrypted bool
	Rotate    bool // use a new key, once
}

// Decision is the next phase.
type Decision struct {
	Phase  Phase
	Writer string // who writes in the end: the name of a key, or observed.Identity
	// New says that the writer's key must still be created.
	New bool
	// Hosts lists the hosts to change, in order. Providers holds the desired list of each, by ID; nil is no
	// configuration.
	Hosts     []string
	Providers map[string][]string
}

// Of returns a host with that encryption; nil means none.
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

// Decide returns the next phase. Every control-plane host must be among the hosts.
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

// fillHosts adds the hosts that differ from the desired providers.
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

// Join returns the providers for a host that joins a cluster or has lost its own: those that the first other host
// starts with, and all that any other can read. So the host can read everything stored, and writes what all can read.
// It is nil if nothing is encrypted.
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

// haveOnly reports whether all hosts have that provider alone.
func haveOnly(hosts []Host, writer string) bool {
	return allHosts(hosts, func(h Host) bool { return h.Same && slices.Equal(h.Next, []string{writer}) })
}

// writesEverywhere reports whether the provider writes on all hosts, now and after a restart.
func writesEverywhere(hosts []Host, writer string) bool {
	return allHosts(hosts, func(h Host) bool { return h.Same && len(h.Next) > 0 && h.Next[0] == writer })
}

func allHosts(hosts []Host, is func(Host) bool) bool {
	return !slices.ContainsFunc(hosts, func(h Host) bool { return !is(h) })
}

func containsAll(have, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(have, name) })
}

// knownKeys returns all keys that any host knows, in order.
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

// chooseWriter returns the newest key, or, if there is none, the name of the first one, which must be created.
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

// keyPrefix precedes the number of a key.
const keyPrefix = "kubeone-"

// FirstKey is the name of the first key of a cluster.
const FirstKey = keyPrefix + "1"

func keyName(n int) string { return fmt.Sprintf("%s%d", keyPrefix, n) }

// keyNumber returns the number of a key of kubeone's; 0 for any other.
func keyNumber(name string) int {
	digits, ours := strings.CutPrefix(name, keyPrefix)
	n, err := strconv.Atoi(digits)
	if !ours || err != nil {
		return 0
	}
	return n
}
