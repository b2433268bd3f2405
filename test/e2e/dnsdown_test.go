//go:build e2e && long

package e2e

// dnsDown leaves cluster DNS without a Node: nobody is told that the cluster simply matches. When there is one again, a
// run waits until it runs, and what status says after it is no other.
func dnsDown(s *story) {
	nodes := hostnames(s.Members())
	s.kube(append([]string{"cordon"}, nodes...)...)
	s.kube("-n", "kube-system", "delete", "pods", "-l", "k8s-app=kube-dns")
	says := []string{
		"cluster DNS: not as it should be, and may only be late; looking again for up to 60 s",
		"No changes. The cluster matches the manifest, except for: cluster DNS (does not run on any Node).",
	}
	s.run(4, []string{"plan"}, says...)
	s.run(4, []string{"apply", "-y"}, says...)
	s.run(3, []string{"status"}, "cluster DNS does not run on any Node")
	s.kube(append([]string{"uncordon"}, nodes...)...)
	s.run(0, []string{"apply", "-y"}, "No changes. The cluster matches the manifest.")
	if r := s.Run(s.Context(), "status"); r.Status != 0 {
		s.Errorf("it matched, and then:\n%s", r)
	}
}
