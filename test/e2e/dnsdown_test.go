//go:build e2e && long

package e2e

import (
	"context"
	"slices"
	"time"
)

// dnsDown leaves cluster DNS without a Node: a run must not report that the cluster matches. When a Node is back, a run
// waits until DNS runs, and status agrees with it. kubeone also reports DNS when the only host that can run it leaves.
func dnsDown(s *scenario) {
	nodes := hostnamesOf(s.Members())
	s.runKubectl(append([]string{"cordon"}, nodes...)...)
	s.runKubectl("-n", "kube-system", "delete", "pods", "-l", "k8s-app=kube-dns")
	says := []string{
		"cluster DNS: not in the desired state yet; checking again for up to 60 s",
		"No changes. The cluster matches the manifest, except for: cluster DNS (not running on any Node).",
	}
	s.runCommand(4, []string{"plan"}, says...)
	s.runCommand(4, []string{"apply", "-y"}, says...)
	s.runCommand(3, []string{"status"}, "cluster DNS is not running on any Node")
	s.runKubectl(append([]string{"uncordon"}, nodes...)...)
	s.runCommand(0, []string{"apply", "-y"}, "No changes. The cluster matches the manifest.")
	if r := s.Run(s.Context(), "status"); r.Status != 0 {
		s.Errorf("it matched, and then:\n%s", r)
	}
	leaves := s.Lab.Workers()[1].Hostname
	others := slices.DeleteFunc(nodes, func(name string) bool { return name == leaves })
	s.runKubectl(append([]string{"cordon"}, others...)...)
	s.runKubectl("-n", "kube-system", "delete", "pods", "-l", "k8s-app=kube-dns")
	s.eventually("cluster DNS to run on the host that leaves", time.Minute, func(ctx context.Context) error {
		_, err := s.Kube(ctx, "rollout", "status", "deployment/coredns", "-n", "kube-system", "--timeout=5s")
		return err
	})
	s.runCommand(0, []string{"node", "remove", leaves, "-y"}, "cluster DNS: not healthy yet; checking again",
		"Done. "+leaves+" is no longer in the cluster.", "Not running yet: cluster DNS; see kubeone status.")
	s.runKubectl(append([]string{"uncordon"}, others...)...)
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
}
