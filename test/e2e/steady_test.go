//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/workspace"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// nothingToDo: after an apply there is nothing left to do, and finding that out costs each host one login
// and one command.
func nothingToDo(s *scenario) {
	marks := map[string]string{}
	for _, host := range s.Members() {
		mark, err := operator.Mark(s.Context(), host)
		s.must(err)
		marks[host.Hostname] = mark
	}
	r := s.runCommand(0, []string{"plan"}, "No changes. The cluster matches the manifest.")
	s.Logf("plan answered after %.2f s", r.Took.Seconds())
	for _, host := range s.Members() {
		logins, err := operator.Logins(s.Context(), host, marks[host.Hostname])
		s.must(err)
		s.checkEqual("logins on "+host.Hostname, 1, logins)
	}
	s.eventually("a plan without steps, by one command for each host", time.Minute, s.oneCommandEach)
	before := s.readStarted(s.Members())
	s.runCommand(0, []string{"apply", "-y"}, "No changes")
	s.checkEqual("what runs since when", before, s.readStarted(s.Members()))
}

// oneCommandEach looks with the product's own engine, which counts what it does with hosts. Requests of the API and of
// etcd go through tunnels, which are not commands. It fails as long as the plan has steps: on a busy machine a member
// of etcd may not answer in time.
func (s *scenario) oneCommandEach(context.Context) error {
	w, err := workspace.Open(s.Context(), workspace.Options{
		Manifest: s.Manifest, Bundles: []string{s.Bundle}, StateDir: s.TempDir(), NewHosts: host.PolicyStrict,
	})
	s.must(err)
	defer w.Close()
	p, err := w.Engine.Propose(s.Context(), engine.Apply{})
	s.must(err)
	if !p.Plan.Empty() {
		return fmt.Errorf("the plan is not empty: %+v", p.Plan)
	}
	stats := w.Stats()
	s.checkEqual("hosts connected to", len(s.Members()), len(stats.Hosts))
	tunnels := 0
	for name, h := range stats.Hosts {
		tunnels += h.Tunnels
		h.Tunnels = 0
		s.checkEqual("what was done with "+name, sshpool.HostStats{Dials: 1, Connections: 1, Commands: 1}, h)
	}
	s.Logf("one connection and one command for each host; %d connections to API and etcd", tunnels)
	return nil
}

func (s *scenario) readStarted(hosts []*fleet.Host) map[string]string {
	s.Helper()
	out, err := operator.Started(s.Context(), hosts)
	s.must(err)
	return out
}

// addWorker enlists the spare host. The plan names it alone, and after apply nothing was restarted anywhere else.
func addWorker(s *scenario) {
	old, spare := s.Members(), s.Lab.Spares()[0]
	before := s.readStarted(old)
	s.must(s.Lab.SetSpare(s.Context(), spare, false))
	s.must(s.WriteManifest(decorateWorker))
	s.runCommand(2, []string{"plan"}, spare.Hostname)
	s.checkEqual("hosts with steps", []string{spare.Hostname}, s.plannedHosts())
	s.identitiesAreAsked(func() {
		s.runCommand(0, []string{"apply", "-y"}, "Done.", "own-token-other-node was not approved: its common name is",
			"somebodys-token was not approved", "no-such-token was not approved", "address-of-the-api was not approved",
			"address-of-a-peer was not approved", "name-of-a-service was not approved")
	})
	s.awaitHealthy()
	s.checkEqual("what runs on the other hosts since when", before, s.readStarted(old))
	s.must(s.ImportAgnhost(s.Context(), []*fleet.Host{spare}))
	// The new host gets a pod of the workload, which must not begin in the next part.
	s.runKubectl("rollout", "status", "daemonset/web", "--timeout=180s")
	s.nothingToDo()
}

// pausedHost lets a worker hang, and then a control-plane host.
func pausedHost(s *scenario) {
	for _, host := range []*fleet.Host{s.Lab.Workers()[0], s.Lab.ControlPlanes()[2]} {
		s.pauseDuring(func() {
			r := s.runCommand(2, []string{"plan"}, host.Hostname, "no answer to the handshake",
				"does not answer: power, network, SSH")
			if r.Took > 10*time.Second && !strings.Contains(r.Text(), "not in the desired state yet") { // another one was late
				s.Errorf("plan took %s", r.Took)
			}
			s.runCommand(3, []string{"status"}, host.Hostname)
		}, host)
		s.awaitHealthy()
		s.eventually("nothing to do", time.Minute, s.planIsEmpty)
	}
}

// pauseDuring lets hosts hang while something else happens.
func (s *scenario) pauseDuring(while func(), hosts ...*fleet.Host) {
	s.Helper()
	var hanging []*fleet.Host
	wake := func() {
		for len(hanging) > 0 {
			host := hanging[0]
			hanging = hanging[1:]
			s.must(host.Unpause(s.Context()))
		}
	}
	defer wake() // also when while ends the part
	for _, host := range hosts {
		s.must(host.Pause(s.Context()))
		hanging = append(hanging, host)
	}
	while()
	wake()
}
