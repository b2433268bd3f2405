package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/addons"
	"kubeone/internal/addons/resources"
	"kubeone/internal/cluster"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/jointoken"
	"kubeone/internal/cluster/record"
	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// living returns the objects of a healthy cluster.
func living() []runtime.Object {
	return []runtime.Object{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"old": "x"}},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"},
			Status: appsv1.DeploymentStatus{
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
				},
			},
		},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-flannel", Name: "kube-flannel-ds"}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}},
	}
}

// onCluster is a run of cluster steps.
func onCluster(t *testing.T, steps ...plan.Step) (*Run, *fake.Clientset, *journal) {
	t.Helper()
	api := fake.NewClientset(living()...)
	j := &journal{}
	r := &Run{
		Plan: plan.Plan{Format: 1, Cluster: "alpha", Steps: steps, Hosts: named(), Nodes: named()},
		Want: wanted("1"),
		Addons: []addons.Addon{
			{Name: "flannel", Digest: "addon-1",
				Wait: []resources.Workload{{Kind: "DaemonSet", Namespace: "kube-flannel", Name: "kube-flannel-ds"}}},
		},
		RunID: "run-1", Holder: "me@here", Manifest: "kind: KubeOneCluster\n", Emit: j.emit, Now: time.Now,
	}
	r.state.client, r.state.stopApprovals = cluster.New(api, nil), func() {}
	return r, api, j
}

func tokensOf(t *testing.T, api *fake.Clientset) []corev1.Secret {
	t.Helper()
	list, err := api.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestAJoinTokenIsForOneHostUntilItsStepHasEnded(t *testing.T) {
	t.Parallel()
	r, api, _ := onCluster(t)
	r.Want, r.Plan.Nodes["2"] = wanted("1", "2"), "node-2"
	now := time.Now()
	r.Now = func() time.Time { return now }
	give := func(host string) string {
		t.Helper()
		token, err := r.joinToken(patience(t), host)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first, other := give("1"), give("2")
	if again := give("1"); again != first || other == first {
		t.Errorf("host 1 got another token, or that of host 2")
	}
	now = now.Add(10 * time.Minute)
	second := give("1")
	if second == first {
		t.Error("a token was used that is too old to begin a join with")
	}
	bearers := map[string]string{}
	for _, secret := range tokensOf(t, api) {
		bearers[string(secret.Data["token-id"])] = secret.Annotations[jointoken.NodeAnnotation]
	}
	id := func(token string) string { return strings.Split(token, ".")[0] }
	want := map[string]string{id(first): r.nodeName("1"), id(second): r.nodeName("1"), id(other): r.nodeName("2")}
	if diff := cmp.Diff(want, bearers); diff != "" {
		t.Error(diff)
	}
	if err := r.afterSuccess(patience(t), stepOf("j", "1", step.JoinWorker)); err != nil {
		t.Fatal(err)
	}
	if left := tokensOf(t, api); len(left) != 2 {
		t.Errorf("%d tokens are left, want those of host 2 and the one that was too old", len(left))
	}
	r.Plan.Steps = []plan.Step{stepOf("revoke-tokens", "", step.RevokeTokens)}
	if err := r.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	if left := tokensOf(t, api); len(left) > 0 {
		t.Errorf("%d tokens are left", len(left))
	}
}

func TestTheAutoApprovalIsRemovedOnceAndForAll(t *testing.T) {
	t.Parallel()
	r, api, _ := onCluster(t, stepOf("remove-auto-approval", "", step.RemoveAutoApproval))
	bindings := api.RbacV1().ClusterRoleBindings()
	for _, name := range []string{certificates.AutoApprovalBinding, "kubeadm:node-autoapprove-certificate-rotation"} {
		if _, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time there is nothing to do
		if err := r.Do(patience(t), nil); err != nil {
			t.Fatal(err)
		}
	}
	list, err := bindings.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name == certificates.AutoApprovalBinding {
		t.Errorf("left are %v, %v", list.Items, err)
	}
}

func TestTheTokenOfKubeadmInitIsOursToRevoke(t *testing.T) {
	t.Parallel()
	if !strings.HasPrefix(componentconfig.TokenDescription, jointoken.Author) {
		t.Errorf("%q does not begin with %q", componentconfig.TokenDescription, jointoken.Author)
	}
}

func TestANodeGetsItsMetadataAndIsAwaited(t *testing.T) {
	t.Parallel()
	s := stepOf("node-ready/node-1", "1", step.NodeReady)
	s.Intent.NodeName = "node-1"
	s.Intent.Params = step.NodeReadyParams{
		Labels: map[string]string{"zone": "a", "old-": ""}, Taints: []desired.Taint{{Key: "k", Effect: "NoSchedule"}},
	}
	r, api, _ := onCluster(t, s)
	if err := r.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	node, err := api.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"zone": "a"}, node.Labels); diff != "" {
		t.Error(diff)
	}
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "k" {
		t.Errorf("taints %v", node.Spec.Taints)
	}
}

func TestAddonsAndTheRunAreRecorded(t *testing.T) {
	t.Parallel()
	addon := stepOf("addon/flannel", "", step.ApplyAddon)
	addon.Intent.Params = step.ApplyAddonParams{Addon: "flannel"}
	r, api, _ := onCluster(t, addon, stepOf("await", "", step.AwaitWorkloads, "addon/flannel"),
		stepOf("record", "", step.SaveRecord, "await"))
	if err := r.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	got, err := cluster.New(api, nil).Record(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got.History {
		got.History[i].Started, got.History[i].Finished = time.Time{}, time.Time{}
		for n := range got.History[i].Steps {
			got.History[i].Steps[n].Began, got.History[i].Steps[n].Seconds = 0, 0
		}
	}
	want := &record.Record{
		Cluster: "alpha", ManifestDigest: "manifest-1", Manifest: "kind: KubeOneCluster\n", RunID: "run-1",
		Nodes:  r.Plan.Nodes,
		Addons: map[string]string{"flannel": "addon-1"},
		History: []record.Run{{ID: "run-1", Who: "me", From: "here", PlanDigest: r.Plan.Digest(), Result: "done",
			Planned: 3, Steps: []record.Step{
				{ID: "addon/flannel", Result: "done"}, {ID: "await", Result: "done"}, {ID: "record", Result: "done"},
			}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A run rewrites what it knows and leaves the rest alone.
func TestARunRepairsTheRecord(t *testing.T) {
	t.Parallel()
	bad := map[string]string{
		"cluster": "x y", "manifestDigest": "x y", "manifest": "[", "runID": "x y", "nodes": "x", "history": "x",
		"formerEndpoints": "a,b", "hardening": "off", "addons": "x", "theirs": "kept",
	}
	for name, c := range map[string]struct {
		reach observed.Reach
		left  []string
	}{
		"all hosts answer":    {observed.Reached, []string{"addons"}},
		"one does not answer": {observed.Unreachable, []string{"addons", "nodes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, api, _ := onCluster(t, stepOf("record", "", step.SaveRecord))
			r.World.Hosts = map[string]observed.Host{"1": {Reach: c.reach}}
			r.Want.Endpoint.Former = []string{"old.example.com"}
			maps := api.CoreV1().ConfigMaps("kube-system")
			if _, err := maps.Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: record.Name, Namespace: "kube-system"}, Data: bad,
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := r.Do(patience(t), nil); err != nil {
				t.Fatal(err)
			}
			held, err := maps.Get(t.Context(), record.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := record.Decode(held.Data)
			var left []string
			for key := range got.Unreadable {
				left = append(left, key)
				if held.Data[key] != bad[key] {
					t.Errorf("%s is %q now", key, held.Data[key])
				}
			}
			slices.Sort(left)
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Errorf("what cannot be read (-want +got):\n%s", diff)
			}
			if held.Data["theirs"] != "kept" || got.Cluster != "alpha" || len(got.History) != 1 ||
				cmp.Diff(r.Want.Endpoint.Former, got.FormerEndpoints) != "" {
				t.Errorf("got %v", held.Data)
			}
		})
	}
}

func TestTheRecordHasTheNodesThatAreKnown(t *testing.T) {
	t.Parallel()
	r := &Run{
		Plan: plan.Plan{
			Nodes: map[string]string{"1": "b", "2": "a", "4": "claimed", "5": "joins"},
			Steps: []plan.Step{stepOf("j", "5", step.JoinWorker), stepOf("p", "4", step.Prepare)},
		},
		Want: desired.Cluster{Workers: []desired.Host{{ID: "1"}, {ID: "2"}, {ID: "3"}, {ID: "4"}, {ID: "5"}}},
		World: observed.World{
			API: observed.API{Nodes: []observed.Node{{Name: "a"}}},
			Hosts: map[string]observed.Host{
				"1": {Reach: observed.Unreachable}, "2": {Reach: observed.Reached}, "3": {Reach: observed.Reached},
				"4": {Reach: observed.Reached}, "5": {Reach: observed.Reached},
			},
		},
	}
	// Host 4 is not a Node. The record would give it that name even if another host's Node gets the name later.
	want := map[string]string{"1": "a", "2": "a", "3": "c", "4": "4", "5": "joins"}
	if diff := cmp.Diff(want, r.nodeNames(map[string]string{"1": "a", "2": "b", "3": "c"})); diff != "" {
		t.Error(diff)
	}
}

// roller is an API whose roll-outs skip a Node.
type roller struct{ API }

func (roller) WaitRollout(_ context.Context, w resources.Workload) ([]string, error) {
	if w.Name == "kube-proxy" {
		return []string{"node-3"}, nil
	}
	return nil, nil
}

func (roller) WaitDeploymentAvailable(context.Context, string, string) error { return nil }

func TestNodesThatARolloutLeavesBehindAreNamed(t *testing.T) {
	t.Parallel()
	r, _, j := onCluster(t)
	if err := r.awaitWorkloads(t.Context(), roller{}, stepOf("await-workloads", "", step.AwaitWorkloads)); err != nil {
		t.Fatal(err)
	}
	if len(j.events) != 1 || j.events[0].Type != Warning ||
		j.events[0].Line != "kube-proxy: did not wait for Nodes that are not Ready: node-3" {
		t.Errorf("%+v", j.events)
	}
}

func TestANodeIsDrainedAndDeleted(t *testing.T) {
	t.Parallel()
	drain, gone := stepOf("drain-node/node-1", "1", step.DrainNode),
		stepOf("delete-node/node-1", "1", step.DeleteNode, "drain-node/node-1")
	drain.Intent.NodeName, gone.Intent.NodeName = "node-1", "node-1"
	r, api, _ := onCluster(t, drain, gone)
	if err := r.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	if list, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("%v, %v", list.Items, err)
	}
}

func TestStepsThatCannotBeCarriedOutSayWhy(t *testing.T) {
	t.Parallel()
	unknown := stepOf("addon/x", "", step.ApplyAddon)
	unknown.Intent.Params = step.ApplyAddonParams{Addon: "x"}
	for says, s := range map[string]plan.Step{
		"unknown addon x":          unknown,
		"cannot be carried out":    stepOf("odd", "", step.Kind("odd")),
		"etcd cannot be reached":   stepOf("remove-etcd/1", "1", step.RemoveEtcd),
		"cluster: : a step of kin": stepOf("other", "", step.Kind("other")),
	} {
		r, _, _ := onCluster(t, s)
		if err := r.Do(patience(t), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", s.ID, err, says)
		}
	}
}

func TestAClusterThatCannotBeReachedIsSaidToBeSo(t *testing.T) {
	t.Parallel()
	j := &journal{}
	r := &Run{Plan: plan.Plan{Steps: []plan.Step{stepOf("record", "", step.SaveRecord)}}, Emit: j.emit, Now: time.Now}
	err := r.Do(patience(t), nil)
	var failed *StepError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "API of the cluster cannot be reached") {
		t.Errorf("got %v", err)
	}
}

func TestEveryFailureIsReported(t *testing.T) {
	t.Parallel()
	r, _, j := onCluster(t, stepOf("a", "", step.Kind("a")), stepOf("b", "", step.Kind("b")),
		stepOf("c", "", step.RemoveAutoApproval))
	err := r.Do(patience(t), nil)
	for _, want := range []string{`"a"`, `"b"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	var done, total int
	for _, e := range j.events {
		if e.Type == StepDone {
			done, total = done+1, e.Total
		}
	}
	if done != 1 || total != 3 {
		t.Errorf("%d done of %d", done, total)
	}
}

func TestEventsBearTheirFormatAndRun(t *testing.T) {
	t.Parallel()
	r, _, j := onCluster(t)
	if err := r.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	for _, e := range j.events {
		if e.Format != EventFormat || e.RunID != "run-1" || e.Time.IsZero() {
			t.Errorf("%+v", e)
		}
	}
	if first := j.events[0]; first.Digest != r.Plan.Digest() {
		t.Errorf("the first event has digest %q", first.Digest)
	}
}

func TestLinesOfOutput(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	w := &lineWriter{line: func(s string) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, s)
	}}
	for _, piece := range []string{"on", "e\r\n\n  \ntwo\nthr", "ee"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	w.restart()
	_, _ = w.Write([]byte("one\ntwo\nthree\nfour"))
	w.flush()
	if diff := cmp.Diff([]string{"one", "two", "three", "four"}, got); diff != "" {
		t.Error(diff)
	}
}

// Every kind that belongs to the API or etcd runs there, and no other.
func TestEveryKindThatRunsOnNoHostIsCarriedOut(t *testing.T) {
	t.Parallel()
	var want []step.Kind
	for _, k := range step.Kinds() {
		if !k.OnHost() && k.Place() != step.OnOperator {
			want = append(want, k)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(clusterSteps()))); diff != "" {
		t.Errorf("-kinds of internal/plan/step +those carried out:\n%s", diff)
	}
}

// Every secret in the table needs a source.
func TestEverySecretHasASource(t *testing.T) {
	t.Parallel()
	for _, k := range step.Kinds() {
		for _, role := range []desired.Role{desired.ControlPlane, desired.Worker} {
			s := plan.Step{ID: "s", Host: "1", Intent: step.Intent{Kind: k, Role: role}}
			for _, secret := range s.Intent.Secrets() {
				r := &Run{Now: time.Now}
				if _, err := r.secretFiles(t.Context(), s, secret); err != nil &&
					strings.Contains(err.Error(), "unknown secret") {
					t.Errorf("%s: %v", k, err)
				}
			}
		}
	}
}

// yard is an API with Machines. It records calls and can fail the wait.
type yard struct {
	API
	asked  []string
	failed error
}

func (y *yard) DeleteMachines(context.Context) error {
	y.asked = append(y.asked, "delete")
	return nil
}

func (y *yard) WaitHostsFree(ctx context.Context, within time.Duration) error {
	y.asked = append(y.asked, "wait "+within.String())
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < within {
		y.asked = append(y.asked, "the step ends before that")
	}
	return y.failed
}

func TestTheHostsOfMachinesAreAwaitedBeforeWhatNeedsThem(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // longer than any step
	defer cancel()
	wait := stepOf("await-hosts", "", step.AwaitHosts, "delete-machines")
	wait.Intent.Params = step.AwaitHostsParams{TimeoutSeconds: 1800}
	for _, failed := range []error{nil, errors.New("m-2 does not answer")} {
		r, _, j := onCluster(t, stepOf("delete-machines", "", step.DeleteMachines), wait,
			stepOf("after", "", step.RevokeTokens, "await-hosts"))
		api := &yard{API: r.state.client, failed: failed}
		r.state.client = api
		if err := r.Do(ctx, nil); !errors.Is(err, failed) {
			t.Errorf("got %v, want %v", err, failed)
		}
		if diff := cmp.Diff([]string{"delete", "wait 30m0s"}, api.asked); diff != "" {
			t.Error(diff)
		}
		after := slices.Contains(j.lines(), "step-done after")
		if skipped := slices.Contains(j.lines(), "step-skipped after"); after == (failed != nil) || skipped == after {
			t.Errorf("failed: %v, and then %v", failed, j.lines())
		}
	}
}
