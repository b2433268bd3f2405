package clusters

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/decide"
	"kubeone/internal/decide/condition"
	"kubeone/internal/decide/fsm"
	"kubeone/internal/engine"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
)

// fakeSession is a cluster whose plans a test chooses. CarryOut leaves nothing to do.
type fakeSession struct {
	proposal engine.Proposal
	err      error // of Propose
	removal  engine.Proposal
	refusal  error // of a removal
	failure  error // of CarryOut
	runs     int
	removed  []string // IDs of hosts
}

func (*fakeSession) HostID(address string) (string, error) { return "host " + address, nil }

func (s *fakeSession) Propose(_ context.Context, r engine.Request) (engine.Proposal, error) {
	if remove, ok := r.(engine.Remove); ok {
		s.removal.Request = remove
		return s.removal, s.refusal
	}
	return s.proposal, s.err
}

func (s *fakeSession) CarryOut(_ context.Context, p engine.Proposal, _ engine.RunOptions) (engine.Proposal, error) {
	if remove, ok := p.Request.(engine.Remove); ok {
		s.removed, s.removal = append(s.removed, remove.Host), newProposal(fsm.Nothing)
		return s.removal, s.failure
	}
	s.runs++
	return newProposal(fsm.Nothing), s.failure
}

func (*fakeSession) PlanText(engine.Proposal) string { return "the plan\n" }

func (*fakeSession) Close() {}

// newProposal returns a proposal for a cluster of one healthy control-plane host.
func newProposal(route fsm.Route, steps ...plan.Step) engine.Proposal {
	return engine.Proposal{
		Request: engine.Apply{},
		Want: desired.Cluster{
			Name: "prod", Endpoint: desired.Endpoint{Host: "lb.example.com", Port: 6443},
			ControlPlane: []desired.Host{{ID: "1"}},
		},
		Observed: probe.Result{World: observed.World{
			Hosts: map[string]observed.Host{"1": {APIServerVersion: "1.36.1"}},
			API:   observed.API{Nodes: []observed.Node{{KubeletVersion: "1.36.3"}, {KubeletVersion: "1.36.1"}}},
		}},
		Decisions: []decide.Decision{{
			Route: route, Hosts: map[string]condition.Assessment{"1": {Condition: condition.Healthy}},
		}},
		Plan: plan.Plan{Cluster: "prod", Steps: steps},
	}
}

// newController returns a controller for a Cluster with one Machine, and a function that reads the Cluster.
func newController(t *testing.T, s *fakeSession, change func(*v1alpha1.Cluster)) (*Controller,
	func() v1alpha1.Cluster) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	is := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: "kube-system", Generation: 3}}
	if change != nil {
		change(is)
	}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "cp-1", Namespace: "kube-system"}}
	machine.Spec.ProviderSpec.Value = v1alpha1.ProviderConfig{
		CloudProvider:     v1alpha1.ProviderStatic,
		CloudProviderSpec: &runtime.RawExtension{Raw: []byte(`{"publicAddress":"a"}`)},
	}
	pooled := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "pooled", Namespace: "kube-system"}}
	pooled.Spec.ProviderSpec.Value.CloudProvider = "ssh"
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(is, machine, pooled).
		WithStatusSubresource(is, machine).Build()
	c := &Controller{Client: api, Reader: api, Events: events.NewFakeRecorder(100)}
	c.Open = func(_ context.Context, name string, objects []byte) (Session, error) {
		text := string(objects)
		if name != "prod" || !strings.Contains(text, `"cp-1"`) || strings.Contains(text, "pooled") {
			t.Errorf("opened %s with %s", name, text)
		}
		if is.Spec.KubernetesVersion == "wrong" {
			return nil, errors.New("spec.kubernetesVersion: wrong is not a version")
		}
		return s, nil
	}
	return c, func() v1alpha1.Cluster {
		t.Helper()
		var out v1alpha1.Cluster
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(is), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func TestWhatTheControllerDoes(t *testing.T) {
	t.Parallel()
	step := plan.Step{ID: "upgrade/cp-1", Title: "upgrade"}
	planned := newProposal(fsm.Upgrade, step)
	refused := newProposal(fsm.Error)
	refused.Decisions[0].Problems = []problem.Problem{{Code: problem.NetworkImmutable}}
	operator := newProposal(fsm.Instruct)
	operator.Plan.Operator = []problem.Instruction{{Problems: []problem.Problem{{Code: problem.NetworkImmutable}}}}
	manual := func(digest string) func(*v1alpha1.Cluster) {
		return func(c *v1alpha1.Cluster) {
			c.Spec.Approval = v1alpha1.ManualApproval
			c.Annotations = map[string]string{v1alpha1.ApprovedPlanAnnotation: digest}
		}
	}
	for name, c := range map[string]struct {
		change  func(*v1alpha1.Cluster)
		session fakeSession
		phase   v1alpha1.ClusterPhase
		reason  string
		runs    int
		pending bool
	}{
		"nothing to do": {session: fakeSession{proposal: newProposal(fsm.Nothing)}, phase: v1alpha1.ClusterRunning},
		"a plan":        {session: fakeSession{proposal: planned}, phase: v1alpha1.ClusterRunning, runs: 1},
		"a failed run": {
			session: fakeSession{proposal: planned, failure: errors.New("disk full")},
			phase:   v1alpha1.ClusterUpdating, runs: 1,
		},
		"a changed world": {
			session: fakeSession{proposal: planned, failure: engine.ErrWorldChanged},
			phase:   v1alpha1.ClusterUpdating, runs: 1,
		},
		"refused": {session: fakeSession{proposal: refused}, phase: v1alpha1.ClusterFailed, reason: "Refused"},
		"only for a person": {
			session: fakeSession{proposal: operator},
			phase:   v1alpha1.ClusterFailed, reason: "OperatorNeeded",
		},
		"not observed": {
			session: fakeSession{err: errors.New("no route")},
			phase:   v1alpha1.ClusterFailed, reason: "NotObserved",
		},
		"wrong objects": {
			change: func(c *v1alpha1.Cluster) { c.Spec.KubernetesVersion = "wrong" }, phase: v1alpha1.ClusterFailed,
			reason: "InvalidConfiguration",
		},
		"paused": {
			change:  func(c *v1alpha1.Cluster) { c.Annotations = map[string]string{v1alpha1.PausedAnnotation: ""} },
			session: fakeSession{proposal: planned},
		},
		"not approved": {
			change: manual(""), session: fakeSession{proposal: planned}, phase: v1alpha1.ClusterAwaitingApproval, pending: true,
		},
		"another plan is approved": {
			change: manual("sha256:other"), session: fakeSession{proposal: planned},
			phase: v1alpha1.ClusterAwaitingApproval, pending: true,
		},
		"approved": {
			change: manual(planned.Plan.Digest()), session: fakeSession{proposal: planned}, phase: v1alpha1.ClusterRunning,
			runs: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controller, read := newController(t, &c.session, c.change)
			request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "kube-system", Name: "prod"}}
			if _, err := controller.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			got := read().Status
			reason := ""
			if got.ErrorReason != nil {
				reason = *got.ErrorReason
			}
			if got.Phase != c.phase || reason != c.reason || c.session.runs != c.runs {
				t.Errorf("phase %q, reason %q, %d runs; want %q, %q, %d", got.Phase, reason, c.session.runs, c.phase, c.reason,
					c.runs)
			}
			if c.phase != "" && got.ObservedGeneration != 3 {
				t.Errorf("observed generation %d", got.ObservedGeneration)
			}
			if c.pending != (got.PendingPlan != nil) || c.pending && *got.PendingPlan !=
				(v1alpha1.PendingPlan{Digest: planned.Plan.Digest(), Text: "the plan\n"}) {
				t.Errorf("pending plan %+v", got.PendingPlan)
			}
		})
	}
}

func TestTheStatusOfACluster(t *testing.T) {
	t.Parallel()
	s := &fakeSession{proposal: newProposal(fsm.Error)}
	s.proposal.Decisions[0].Problems = []problem.Problem{{Code: problem.NetworkImmutable}}
	controller, read := newController(t, s, nil)
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "kube-system", Name: "prod"}}
	reconcileOnce := func() v1alpha1.ClusterStatus {
		if _, err := controller.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		return read().Status
	}
	got := reconcileOnce()
	if got.ErrorMessage == nil || !strings.Contains(*got.ErrorMessage, "cannot be changed") ||
		got.Conditions[0].Status != "False" {
		t.Errorf("a refused change: %+v", got)
	}
	s.proposal = newProposal(fsm.Nothing)
	got = reconcileOnce()
	if got.ErrorReason != nil || got.ErrorMessage != nil || got.Conditions[0].Status != "True" {
		t.Errorf("the error is not cleared: %+v", got)
	}
	s.proposal.Plan.Unlike = []string{"cp-1: an edited file"}
	if c := reconcileOnce().Conditions[0]; c.Status != "False" || !strings.Contains(c.Message, "an edited file") {
		t.Errorf("a difference that no step changes: %+v", c)
	}
	if len(got.APIEndpoints) != 1 || got.APIEndpoints[0] != (v1alpha1.APIEndpoint{Host: "lb.example.com", Port: 6443}) ||
		*got.ControlPlane != (v1alpha1.ControlPlaneCount{Ready: 1, Wanted: 1}) || got.ObservedGeneration != 3 {
		t.Errorf("status %+v", got)
	}
	var versions []string
	for _, v := range got.Versions {
		versions = append(versions, v.Component+" "+strings.Join(v.Versions, " "))
	}
	if text := strings.Join(versions, ", "); text != "kube-apiserver 1.36.1, kubelet 1.36.1 1.36.3" {
		t.Errorf("versions %s", text)
	}
}

// A host leaves the cluster before its Machine disappears.
func TestADeletedMachine(t *testing.T) {
	t.Parallel()
	s := &fakeSession{
		proposal: newProposal(fsm.Nothing), removal: newProposal(fsm.Nothing, plan.Step{ID: "drain-node/cp-1"}),
		refusal: errors.New("etcd would lose its quorum"),
	}
	controller, _ := newController(t, s, nil)
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "kube-system", Name: "prod"}}
	key := client.ObjectKey{Namespace: "kube-system", Name: "cp-1"}
	reconcileOnce := func() (m v1alpha1.Machine, exists bool) {
		t.Helper()
		if _, err := controller.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		err := controller.Client.Get(t.Context(), key, &m)
		return m, err == nil
	}
	m, _ := reconcileOnce()
	if len(m.Finalizers) != 1 {
		t.Fatalf("finalizers %q", m.Finalizers)
	}
	if err := controller.Client.Delete(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	m, exists := reconcileOnce()
	if !exists || m.Status.ErrorMessage == nil || *m.Status.ErrorMessage != "etcd would lose its quorum" {
		t.Errorf("refused: %v, %+v", exists, m.Status)
	}
	s.proposal = newProposal(fsm.Repair, plan.Step{ID: "start/cp-2"})
	if reconcileOnce(); s.runs != 1 {
		t.Error("the rest of the cluster is not repaired")
	}
	s.proposal = newProposal(fsm.Join, plan.Step{Host: "host a", Intent: step.Intent{Kind: step.JoinFinish}})
	if reconcileOnce(); s.runs != 1 {
		t.Error("a host that is to leave joins again")
	}
	s.refusal = nil
	m, exists = reconcileOnce()
	if !exists || m.Status.ErrorMessage != nil || len(s.removed) != 1 || s.removed[0] != "host a" {
		t.Errorf("removed %q, exists %v: %+v", s.removed, exists, m.Status)
	}
	if _, exists = reconcileOnce(); exists || len(s.removed) != 1 {
		t.Errorf("removed %q, exists %v", s.removed, exists)
	}
}
