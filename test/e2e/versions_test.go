//go:build e2e && long

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kubeone/internal/apply"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// olderMinor is a version of the minor before the newest one, with an older containerd in its bundle.
const olderMinor = "1.35.4"

// TestVersionsOfHosts gives a worker another kubelet and container runtime for a while. kubeone changes that worker
// only.
func TestVersionsOfHosts(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "versions", ControlPlanes: 1, Workers: 2, SSHUser: "ops"})
	cache, err := components.DefaultCache()
	s.must(err)
	older, err := fleet.Bundle(t.Context(), cache, olderMinor, components.DefaultCNI, nil, t.Logf)
	s.must(err)
	s.bare = map[string][]string{}
	library := []string{"--bundle", s.Bundle, "--bundle", older}
	installed, olderRuntime := plainContainerd(newest), plainContainerd(olderMinor)
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"versions that cannot be are refused", versionsRefused},
		part{"a worker's kubelet goes down", func(s *scenario) {
			s.onWorkerAlone(versionsOf(olderMinor, ""), library, olderMinor, installed)
		}},
		part{"and up again", func(s *scenario) { s.onWorkerAlone(nil, library, newest, installed) }},
		part{"its container runtime goes down", func(s *scenario) {
			s.onWorkerAlone(versionsOf("", olderRuntime), library, newest, olderRuntime)
		}},
		part{"where no version is named any more, it stays", func(s *scenario) {
			before := s.readStarted(s.Members())
			s.must(s.WriteManifest())
			s.runCommand(2, append([]string{"plan"}, library...), "save manifest and record", "Plan: 1 step:")
			s.runCommand(0, append([]string{"apply", "-y"}, library...), "Done.")
			s.workerRuns(newest, olderRuntime)
			s.checkEqual("what runs on the hosts since when", before, s.readStarted(s.Members()))
		}},
		part{"and up again, where it is named", func(s *scenario) {
			s.onWorkerAlone(versionsOf("", installed), library, newest, installed)
		}},
		part{"both go down, and the program is killed in between", func(s *scenario) {
			s.downKilled(versionsOf(olderMinor, olderRuntime), library, olderRuntime)
		}},
		part{"both go up again", func(s *scenario) {
			s.onWorkerAlone(versionsOf("", installed), library, newest, installed)
		}},
	)
}

// plainContainerd returns the containerd version in the lab's bundle of a Kubernetes version, without a leading v.
func plainContainerd(kubernetes string) string {
	return strings.TrimPrefix(components.ContainerdVersion(kubernetes), "v")
}

// versionsOf sets versions for worker-1. An empty string sets none.
func versionsOf(kubelet, containerd string) operator.Edit {
	return editEntries(func(hosts []map[string]any) {
		for _, h := range hosts {
			if h["hostname"] != "worker-1" {
				continue
			}
			versions := map[string]any{}
			for name, v := range map[string]string{"kubernetes": kubelet, "containerd": containerd} {
				if v != "" {
					versions[name] = v
				}
			}
			h["versions"] = versions
		}
	})
}

// onWorkerAlone applies a manifest with other versions of worker-1. No other host changes.
func (s *scenario) onWorkerAlone(edit operator.Edit, library []string, kubelet, containerd string) {
	s.Helper()
	others := append(s.Lab.ControlPlanes(), s.Lab.Host("worker-2"))
	before := s.readStarted(others)
	s.wantEdited(edit)
	s.runCommand(2, append([]string{"plan"}, library...), "worker-1")
	s.runCommand(0, append([]string{"apply", "-y"}, library...), "Done.")
	s.workerRuns(kubelet, containerd)
	s.checkEqual("what runs on the other hosts since when", before, s.readStarted(others))
	s.runCommand(0, append([]string{"plan"}, library...), "No changes")
}

func (s *scenario) wantEdited(edit operator.Edit) {
	s.Helper()
	if edit == nil {
		s.must(s.WriteManifest())
		return
	}
	s.must(s.WriteManifest(edit))
}

// workerRuns checks the versions in worker-1's Node, and that the node is schedulable.
func (s *scenario) workerRuns(kubelet, containerd string) {
	s.Helper()
	var node corev1.Node
	s.must(s.Object(s.Context(), &node, "node", "worker-1"))
	info := node.Status.NodeInfo
	s.checkEqual("the kubelet of worker-1", "v"+kubelet, info.KubeletVersion)
	s.checkEqual("the container runtime of worker-1", "containerd://"+containerd,
		strings.Replace(info.ContainerRuntimeVersion, "://v", "://", 1))
	s.checkEqual("worker-1 is closed for pods", false, node.Spec.Unschedulable)
	s.awaitHealthy()
}

// downKilled downgrades the worker. It kills the first run while it works on the worker, and runs it again.
func (s *scenario) downKilled(edit operator.Edit, library []string, containerd string) {
	s.Helper()
	others := append(s.Lab.ControlPlanes(), s.Lab.Host("worker-2"))
	before := s.readStarted(others)
	s.wantEdited(edit)
	running, err := s.Start(s.Context(), append([]string{"apply", "-y"}, library...)...)
	s.must(err)
	if _, ok := running.Await(operator.Step(apply.StepStarted, "upgrade-worker/worker-1")); !ok {
		s.Fatalf("nothing was done to worker-1\n%s", running.Wait())
	}
	s.must(running.Kill())
	s.Logf("killed: exit status %d", running.Wait().Status)
	s.runCommand(0, append([]string{"apply", "-y"}, library...))
	s.workerRuns(olderMinor, containerd)
	s.checkEqual("what runs on the other hosts since when", before, s.readStarted(others))
	s.runCommand(0, append([]string{"plan"}, library...), "No changes")
}

// versionsRefused: each of these is one error and changes nothing.
func versionsRefused(s *scenario) {
	before := s.readStarted(s.Members())
	for name, refused := range map[string]struct {
		edit operator.Edit
		text string
	}{
		"newer than the API servers":   {versionsOf("1.36.9", ""), "newer than versions.kubernetes"},
		"more than three minors":       {versionsOf("1.32.0", ""), "not supported"},
		"a runtime it cannot use":      {versionsOf("", "1.7.22"), "does not work with containerd 1.7.22"},
		"a version that no bundle has": {versionsOf(olderMinor, ""), "kubelet " + olderMinor},
	} {
		manifest, err := s.Variant(strings.ReplaceAll(name, " ", "-"), refused.edit)
		s.must(err)
		r := s.Run(s.Context(), "apply", "-y", "-m", manifest)
		if r.Status == 0 || r.Status == 2 || !strings.Contains(r.Stderr, refused.text) {
			s.Errorf("%s: want it refused with %q\n%s", name, refused.text, r)
		}
		s.Logf("%s: exit status %d: %s", name, r.Status, strings.TrimSpace(r.Stderr))
	}
	s.checkEqual("what runs since when", before, s.readStarted(s.Members()))
}
