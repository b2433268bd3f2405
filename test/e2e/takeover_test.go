//go:build e2e && long

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubeone/internal/apply"
	"kubeone/internal/plan"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestTakeover is a cluster that an older program has made, fleet.Predecessor, and that the present one goes on with:
// it removes one rule of kubeadm's, upgrades it, replaces a host of it, and brings it back after its quorum was lost.
// As long as both are in use, they do not work at the same time, and what the older one does with its plans or looks
// at does no harm.
func TestTakeover(t *testing.T) {
	t.Parallel()
	s := begin(t, fleet.Options{
		Name: "takeover", ControlPlanes: 3, Workers: 1, SSHUser: "ops", KubernetesVersion: olderPatch,
	})
	s.broken(s.Lab.Host("cp-2"), mounted("/var/lib/etcd")) // as nodeReplaced wants it
	s.bare = map[string][]string{}
	s.parts(
		part{"bare hosts become a cluster by an older program", madeByPredecessor},
		part{"while the older program works, the present one is refused", refusedBesidePredecessor},
		part{"the present program takes over, and nothing is started anew", takenOver},
		part{"while the present program works on a worker, the older one is refused", predecessorRefused},
		part{"a plan that the older program saved is carried out or refused, and then all is newer", predecessorsPlan},
		part{"the older program may look at what the present one has done", predecessorLooks},
		part{"a living control-plane host is replaced", nodeReplaced(2)},
		part{"a recovery is refused while the quorum is there", recoveryRefused},
		part{"two of three control-plane hosts are destroyed, and the third one brings it back", twoOfThreeDestroyed},
	)
}

// predecessor is the same operator with the older program, and with a bundle that it has made of the version that is
// wanted now.
func (s *story) predecessor() *story {
	s.Helper()
	old, err := s.With(s.Context(), fleet.Predecessor)
	s.must(err)
	return &story{T: s.T, Operator: old, bare: s.bare}
}

func madeByPredecessor(s *story) {
	old := s.predecessor()
	installPlain(old)
	old.nothingToDo()
}

// refusedBesidePredecessor: the older program replaces the worker and is held up there. A plan of the present one about
// something else, and one about the same host, are refused.
func refusedBesidePredecessor(s *story) {
	old := s.predecessor()
	r := old.heldAtDrain([]string{"node", "replace", "worker-1", "-y", "--bundle", old.Bundle}, func() {
		s.refusedBesides("apply", "-y", "-m", s.labelled("beside-predecessor"))
		s.refusedBesides("node", "remove", "worker-1", "-y")
	})
	s.ended(r, 0)
	s.healthy()
	s.eventually("nothing to do", time.Minute, old.planIsEmpty)
}

// predecessorRefused is the same the other way round, while the present program replaces the worker.
func predecessorRefused(s *story) {
	old := s.predecessor()
	r := s.heldAtDrain([]string{"node", "replace", "worker-1", "-y", "--bundle", s.Bundle}, func() {
		old.refusedBesides("apply", "-y", "-m", s.labelled("beside-successor"))
		old.refusedBesides("node", "remove", "worker-1", "-y")
	})
	s.ended(r, 0)
	s.healthy()
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}

// takenOver: kubeadm's approval of any Node's certificate, which the older program left, is removed, and nothing is
// started anew. Then there is nothing to do with either program's bundle, and nothing is written or recorded.
func takenOver(s *story) {
	old, before := s.predecessor(), s.started(s.Members())
	s.run(2, []string{"plan"}, "remove kubeadm's approval of any Node's certificate",
		"Plan: 2 steps: 0 to create, 1 to change, 1 to remove.")
	s.run(0, []string{"apply", "-y"}, "Done.")
	s.same("what runs on the hosts since when", before, s.started(s.Members()))
	state, runs := s.untouched(), s.runs()
	s.nothingToDo()
	s.run(0, []string{"plan", "--bundle", old.Bundle}, "No changes")
	s.run(0, []string{"apply", "-y"}, "No changes")
	s.run(0, []string{"status"})
	s.same("runs that are remembered", runs, s.runs())
	s.same("hosts and record", state, s.untouched())
}

// predecessorsPlan: the older program has planned the upgrade and saved that. The present one carries it out if that is
// exactly what it would do itself. Otherwise it refuses it, having changed nothing; then it makes a plan of its own.
func predecessorsPlan(s *story) {
	s.must(s.Want(s.Context(), newest))
	old := s.predecessor()
	saved := filepath.Join(s.TempDir(), "saved.json")
	// The older program waits eight seconds for a host, which a busy machine may need for itself.
	s.eventually("the older program to plan", time.Minute, func(ctx context.Context) error {
		if r := old.Run(ctx, "plan", "--out", saved); r.Status != 2 ||
			!strings.Contains(r.Stdout, olderPatch) || !strings.Contains(r.Stdout, newest) {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	upgrade := []string{"apply", "--plan", saved, "--bundle", old.Bundle}
	if !s.wouldDo(saved, old.Bundle) {
		state := s.untouched()
		r := s.Run(s.Context(), upgrade...)
		oneError := len(operator.Lines(r.Stderr)) == 1 && strings.Contains(r.Stderr, saved)
		if r.Status != 10 && r.Status != 15 || !oneError {
			s.Errorf("want the plan refused with one error\n%s", r)
		}
		s.Logf("the saved plan is refused: %s", r.Stderr)
		s.same("hosts and record", state, s.untouched())
		upgrade = []string{"apply", "-y"}
	}
	r := s.heldAtDrain(upgrade, func() { old.refusedBesides("apply", "-y") })
	s.ended(r, 0)
	s.upgraded(newest)
	s.dns()
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}

// predecessorLooks: whatever the older program makes of the cluster now, it does not fall over, and it changes nothing.
func predecessorLooks(s *story) {
	old := s.predecessor()
	state := s.untouched()
	for _, command := range []string{"plan", "status"} {
		r := old.Run(s.Context(), command)
		if r.Status < 0 || strings.Contains(r.Stderr, "panic:") {
			s.Errorf("%s", r)
		}
		s.Logf("%s of the older program: exit status %d", command, r.Status)
	}
	s.same("hosts and record", state, s.untouched())
	s.nothingToDo()
}

// stays is a pod on worker-1 that cannot go. Nor does anything run in it: it waits for a volume that there is not.
const stays = `
apiVersion: v1
kind: Pod
metadata: {name: stays, finalizers: [example.com/stays]}
spec:
  nodeName: worker-1
  terminationGracePeriodSeconds: 0
  containers: [{name: none, image: example.com/none, volumeMounts: [{name: none, mountPath: /none}]}]
  volumes: [{name: none, configMap: {name: none}}]
`

// heldAtDrain runs a command that drains worker-1, and holds it up there while something else happens. It returns how
// the command ended after it could go on.
func (s *story) heldAtDrain(args []string, while func()) operator.Result {
	s.Helper()
	_, err := s.Feed(s.Context(), stays, "apply", "-f", "-")
	s.must(err)
	goOn := func() {
		ctx := context.WithoutCancel(s.Context())
		_, err := s.Kube(ctx, "patch", "pod", "stays", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		s.must(err)
	}
	running, err := s.Start(s.Context(), args...)
	s.must(err)
	if _, ok := running.Await(operator.Step(apply.StepStarted, "drain-node/worker-1")); !ok {
		s.Fatalf("worker-1 was not drained\n%s", running.Wait())
	}
	func() {
		defer goOn() // also when while ends the chapter
		s.eventually("the drain waits for the pod", time.Minute, s.toGo)
		while()
	}()
	return running.Wait()
}

// toGo holds when the pod that cannot go has been told to.
func (s *story) toGo(ctx context.Context) error {
	var pod corev1.Pod
	err := s.Object(ctx, &pod, "pod", "stays")
	if err == nil && pod.DeletionTimestamp == nil {
		err = errors.New("nobody told it")
	}
	return err
}

// refusedBesides runs a command that must be refused because another run has the cluster's lock, and that changes
// nothing. Pods that the other run's drain has moved may start meanwhile.
func (s *story) refusedBesides(args ...string) {
	s.Helper()
	look := func() map[string]any {
		state := s.untouched()
		state["started"] = s.units()
		return state
	}
	state := look()
	s.run(10, args, "works on this cluster", "--force-unlock")
	s.same("hosts and record", state, look())
}

// units says when the container runtime and the kubelet of each host were last started.
func (s *story) units() map[string][]string {
	s.Helper()
	units := map[string][]string{}
	for name, text := range s.started(s.Members()) {
		units[name] = slices.DeleteFunc(operator.Lines(text), func(line string) bool {
			return !strings.HasPrefix(line, "containerd ") && !strings.HasPrefix(line, "kubelet ")
		})
	}
	return units
}

// labelled is a manifest that wants another label on the worker, so that there is something to do.
func (s *story) labelled(name string) string {
	s.Helper()
	label := "      hostname: worker-1\n      labels:\n        example.com/wanted: " + name + "\n"
	path, err := s.Variant(name, operator.Replace("      hostname: worker-1\n", label))
	s.must(err)
	return path
}

// untouched is all that must stay equal where nothing is to be changed: what runs since when, what is written on the
// hosts, and the cluster's record.
func (s *story) untouched() map[string]any {
	s.Helper()
	written, err := operator.Written(s.Context(), s.Members())
	s.must(err)
	var record corev1.ConfigMap
	s.must(s.Object(s.Context(), &record, "--namespace=kube-system", "configmap", "kubeone"))
	return map[string]any{"started": s.started(s.Members()), "written": written, "record": record.Data}
}

// runs are the names of the runs that the cluster remembers, as the program reads them.
func (s *story) runs() []string {
	s.Helper()
	var history struct{ Runs []struct{ ID string } }
	r := s.run(0, []string{"history", "-o", "json"})
	s.must(json.Unmarshal([]byte(r.Stdout), &history))
	var names []string
	for _, run := range history.Runs {
		names = append(names, run.ID)
	}
	if len(names) == 0 {
		s.Errorf("no run is remembered\n%s", r)
	}
	return names
}

// wouldDo reports whether a saved plan is what the program would do now with a bundle.
func (s *story) wouldDo(path, bundle string) bool {
	s.Helper()
	text, err := os.ReadFile(path)
	s.must(err)
	var saved, now plan.Plan
	if json.Unmarshal(text, &saved) != nil || saved.Format != plan.FormatVersion {
		return false
	}
	r := s.run(2, []string{"plan", "-o", "json", "--bundle", bundle})
	s.must(json.Unmarshal([]byte(r.Stdout), &now))
	return saved.Digest() == now.Digest()
}
