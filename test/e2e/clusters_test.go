//go:build e2e && long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// TestClusterController changes a cluster by editing its Cluster and Machines while the controller runs outside the
// cluster.
func TestClusterController(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "controller", ControlPlanes: 3, Workers: 1, SpareWorkers: 1, SSHUser: "ops", KubernetesVersion: olderPatch,
	})
	var running *operator.Controllers
	t.Cleanup(func() {
		if running != nil {
			running.Kill()
		}
	})
	s.runParts(
		part{"objects become a cluster", func(s *scenario) {
			s.exportObjects()
			installPlain(s)
		}},
		part{"the controller finds the cluster in its desired state", func(s *scenario) {
			running = s.startClusterController()
			s.awaitCluster("Running")
			s.checkEqual("what kubectl lists", "controller 1.36.1 3 3 Running", strings.Join(strings.Fields(
				s.runKubectl("-n", "kube-system", "get", "clusters.cluster.k8s.io", "--no-headers", "-o", "custom-columns="+
					"A:.metadata.name,B:.spec.kubernetesVersion,C:.status.controlPlane.ready,D:.status.controlPlane.wanted,"+
					"E:.status.phase")), " "))
		}},
		part{"a plan waits for its approval", planAwaitsApproval},
		part{"a wrong version is refused, and the error is cleared", wrongVersionIsRefused},
		part{"a Machine becomes a worker", machineBecomesWorker},
		part{"a control-plane host leaves with its Machine, and joins again", machineIsReplaced},
		part{"an edited version is carried out under load, through a kill of the controller", func(s *scenario) {
			under := s.startLoad()
			s.patchCluster(`{"spec":{"kubernetesVersion":"` + newest + `"}}`)
			s.eventually("a kubelet of the new version", 10*time.Minute, func(ctx context.Context) error {
				got, err := s.Kube(ctx, "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}")
				if err == nil && !strings.Contains(got, newest) {
					err = errors.New(got)
				}
				return err
			})
			running.Kill()
			running = s.startClusterController()
			s.awaitCluster("Running")
			s.everythingRuns(newest)
			s.endLoad(under)
		}},
	)
}

// startClusterController starts a controller with the bundles of both versions.
func (s *scenario) startClusterController() *operator.Controllers {
	s.Helper()
	args := []string{"controller", "--clusters", "--kubeconfig", filepath.Join(s.Dir, "admin.conf")}
	cache, err := components.DefaultCache()
	s.must(err)
	for _, version := range []string{olderPatch, newest} {
		bundle, err := fleet.Bundle(s.Context(), cache, version, s.Lab.CNI, nil, s.Logf)
		s.must(err)
		args = append(args, "--bundle", bundle)
	}
	c, err := s.StartControllers(s.Context(), "controller.log", args)
	s.must(err)
	return c
}

func (s *scenario) patchCluster(patch string) {
	s.Helper()
	s.runKubectl("-n", "kube-system", "patch", "clusters.cluster.k8s.io", "controller", "--type=merge", "-p", patch)
}

// clusterSays reports whether a part of the Cluster contains a text.
func (s *scenario) clusterSays(path, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := s.Kube(ctx, "-n", "kube-system", "get", "clusters.cluster.k8s.io", "controller", "-o", "jsonpath="+path)
		if err == nil && !strings.Contains(got, want) {
			err = fmt.Errorf("%s is %q, want %q", path, got, want)
		}
		return err
	}
}

// awaitCluster waits until the controller has seen the newest spec, and the Cluster has that phase.
func (s *scenario) awaitCluster(phase string) {
	s.Helper()
	s.eventually("the Cluster to be "+phase, 10*time.Minute, func(ctx context.Context) error {
		got, err := s.Kube(ctx, "-n", "kube-system", "get", "clusters.cluster.k8s.io", "controller", "-o",
			"jsonpath={.metadata.generation} {.status.observedGeneration} {.status.phase} {.status.errorMessage}")
		fields := strings.Fields(got)
		if err == nil && (len(fields) < 3 || fields[0] != fields[1] || fields[2] != phase) {
			err = fmt.Errorf("the Cluster is %q", got)
		}
		return err
	})
}

// liveObjects writes the stored objects to a file.
func (s *scenario) liveObjects() string {
	s.Helper()
	path := filepath.Join(s.Dir, "live.yaml")
	s.must(os.WriteFile(path, []byte(s.runKubectl("-n", "kube-system", "get",
		"clusters.cluster.k8s.io,machines.cluster.k8s.io", "-o", "yaml")), 0o600))
	return path
}

func planAwaitsApproval(s *scenario) {
	s.patchCluster(`{"spec":{"approval":"Manual","apiServer":{"extraArgs":[{"name":"profiling","value":"false"}]}}}`)
	s.awaitCluster("AwaitingApproval")
	pending := func(field string) string {
		return s.runKubectl("-n", "kube-system", "get", "clusters.cluster.k8s.io", "controller", "-o",
			"jsonpath={.status.pendingPlan."+field+"}")
	}
	planned := s.runCommand(2, []string{"plan", "-m", s.liveObjects()})
	s.checkEqual("the plan that waits", strings.TrimSpace(planned.Stdout), strings.TrimSpace(pending("text")))
	before := s.readStarted(s.Members())
	s.patchCluster(`{"metadata":{"annotations":{"cluster.k8s.io/approved-plan":"sha256:0"}}}`)
	s.patchCluster(`{"spec":{"apiServer":{"certSANs":["other.example.com"]}}}`) // a new generation
	s.awaitCluster("AwaitingApproval")
	s.checkEqual("what runs since when", before, s.readStarted(s.Members()))
	s.patchCluster(`{"metadata":{"annotations":{"cluster.k8s.io/approved-plan":"` + pending("digest") + `"}}}`)
	s.awaitCluster("Running")
	for _, host := range s.Lab.ControlPlanes() {
		out, err := operator.OnEach(s.Context(), []*fleet.Host{host},
			"grep -c -- --profiling=false /etc/kubernetes/manifests/kube-apiserver.yaml")
		s.must(err)
		s.checkEqual("argument on "+host.Hostname, "1", strings.TrimSpace(out[host.Hostname]))
	}
	s.patchCluster(`{"spec":{"approval":"Automatic"}}`)
	s.awaitCluster("Running")
}

func wrongVersionIsRefused(s *scenario) {
	before := s.readStarted(s.Members())
	s.patchCluster(`{"spec":{"kubernetesVersion":"1.38.0"}}`)
	s.awaitCluster("Failed")
	s.must(s.clusterSays("{.status.errorMessage}", "1.38.0")(s.Context()))
	s.patchCluster(`{"spec":{"kubernetesVersion":"` + olderPatch + `"}}`)
	s.awaitCluster("Running")
	s.must(s.clusterSays("{.status.errorReason}", "")(s.Context()))
	s.checkEqual("what runs since when", before, s.readStarted(s.Members()))
}

// createMachine creates the Machine of a host as the file of objects has it.
func (s *scenario) createMachine(host string) {
	s.Helper()
	text, err := os.ReadFile(s.Manifest)
	s.must(err)
	for document := range strings.SplitSeq(string(text), "---\n") {
		if strings.Contains(document, "kind: Machine\n") && strings.Contains(document, "name: "+host+"\n") {
			path := filepath.Join(s.Dir, "machine.yaml")
			s.must(os.WriteFile(path, []byte(document), 0o600))
			s.runKubectl("apply", "-f", path)
		}
	}
}

func machineBecomesWorker(s *scenario) {
	spare := s.Lab.Spares()[0]
	s.must(s.Lab.SetSpare(s.Context(), spare, false))
	s.exportObjects() // with a Machine of the new worker
	s.createMachine(spare.Hostname)
	s.eventually("the worker is a ready Node", 5*time.Minute, allReady(s))
	s.awaitCluster("Running")
}

func machineIsReplaced(s *scenario) {
	s.runKubectl("-n", "kube-system", "delete", "machines.cluster.k8s.io", "cp-3", "--timeout=300s")
	if out, err := s.Kube(s.Context(), "get", "node", "cp-3"); err == nil {
		s.Errorf("the Node of a deleted Machine exists:\n%s", out)
	}
	s.eventually("two control-plane hosts are wanted", time.Minute, s.clusterSays("{.status.controlPlane.wanted}", "2"))
	s.createMachine("cp-3")
	s.eventually("cp-3 is a ready Node", 5*time.Minute, allReady(s))
	s.awaitCluster("Running")
	s.awaitHealthy()
}
