//go:build e2e && long

package e2e

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/test/lab/fleet"
)

// TestPlainManifest uses a minimal manifest: without apiEndpoint, the first host is the endpoint. Hosts' SSH keys are
// accepted at first contact.
func TestPlainManifest(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "plain", ControlPlanes: 3, Workers: 1, SSHUser: "ops", NoPin: true})
	s.must(s.WriteManifest(editFields(func(all map[string]any) { delete(all, "apiEndpoint") })))
	s.runParts(
		part{"bare hosts become a cluster, and its endpoint is the first of them", firstIsEndpoint},
		part{"the host that is the endpoint does not leave", endpointStays},
		part{"a machine comes back with another SSH host key, which is accepted", keyAccepted},
		part{"the endpoint moves to a load balancer, and the host may leave", endpointMayLeave},
	)
}

func firstIsEndpoint(s *scenario) {
	s.runCommand(2, []string{"plan"}, "First contact", "the API endpoint "+s.Lab.Host("cp-1").Address+" is this host")
	installPlain(s)
	s.checkEqual("the cluster's endpoint", s.Lab.Host("cp-1").Address+":6443", s.readPublishedEndpoint())
	s.nothingToDo()
}

func endpointStays(s *scenario) {
	before := s.readStarted(s.Members())
	says := []string{"cp-1 is the API endpoint (" + s.Lab.Host("cp-1").Address + ")", "to a load balancer"}
	s.runCommand(15, []string{"node", "remove", "cp-1", "-y"}, says...)
	s.runCommand(15, []string{"node", "replace", "cp-1", "--bundle", s.Bundle, "-y"}, says...)
	s.checkEqual("what runs since when", before, s.readStarted(s.Members()))
	s.awaitHealthy()
	s.nothingToDo()
}

// keyAccepted: a new machine has the address of a destroyed one. Only the operator can verify its key.
func keyAccepted(s *scenario) {
	host := s.Lab.Host("cp-3")
	s.writeMarkerObject("another-key")
	known := s.readFingerprints(host)
	before := s.readStarted(s.otherMembers(host))
	s.must(s.Lab.Rebuild(s.Context(), host))
	anew := s.readFingerprints(host)

	refused := s.runCommand(13, []string{"apply", "-y"}, "offers the SSH host key", "--accept-host-key cp-3=")
	said := regexp.MustCompile(`offers the SSH host key (SHA256:\S+); the known key is (SHA256:\S+) `).
		FindStringSubmatch(refused.Text())
	if said == nil || !slices.Contains(anew, said[1]) || !slices.Contains(known, said[2]) {
		s.Fatalf("want one of the keys %q in place of one of %q\n%s", anew, known, refused)
	}
	s.runCommand(13, []string{"plan"}, said[0])
	s.runCommand(3, []string{"status"}, said[0])
	s.runCommand(13, []string{"plan", "--accept-host-key", "worker-1=" + said[1]}, said[0])
	s.runCommand(15, []string{"apply", "-y", "--accept-host-key", "cp-3"}, "needs the fingerprint here")
	s.checkEqual("what runs on the others since when", before, s.readStarted(s.otherMembers(host)))

	s.runCommand(2, []string{"plan", "--accept-host-key", "cp-3"}, "First contact", said[1], said[2],
		"remove dead member cp-3", "join: etcd member")
	s.runCommand(0, []string{"apply", "-y", "--accept-host-key", "cp-3=" + said[1]}, "is now recorded",
		"Done. The cluster matches the manifest.")
	s.awaitHealthy()
	s.eventually("nothing to do, without the flag", time.Minute, s.planIsEmpty)
	s.runKubectl("get", "configmap", "another-key")
}

// readFingerprints returns the fingerprints of the host's SSH keys, read at its console.
func (s *scenario) readFingerprints(host *fleet.Host) []string {
	s.Helper()
	var out []string
	for _, line := range host.HostKeys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		s.must(err)
		out = append(out, ssh.FingerprintSHA256(key))
	}
	return out
}

// endpointMayLeave follows the instructions in the refusal.
func endpointMayLeave(s *scenario) {
	s.must(s.WriteManifest())
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.movedTo(s.Lab.Endpoint)
	s.runCommand(2, []string{"node", "remove", "cp-1", "--dry-run"}, "leave etcd")
	s.nothingToDo()
}
