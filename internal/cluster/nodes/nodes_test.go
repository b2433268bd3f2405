package nodes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/model/desired"
	"kubeone/internal/testutil/clustertest"
)

var (
	controlPlane = desired.Taint{Key: ControlPlaneTaint, Effect: "NoSchedule"}
	dedicated    = desired.Taint{Key: "dedicated", Value: "db", Effect: "NoExecute"}
)

func node(change func(*corev1.Node)) *corev1.Node { return clustertest.Node(change) }

func TestNodePatchHoldsOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	type strs = map[string]string
	notReady := corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}
	byKubeadm := corev1.Taint{Key: ControlPlaneTaint, Effect: "NoSchedule"}
	owned := func(what string, taints ...corev1.Taint) *corev1.Node {
		return node(func(n *corev1.Node) { n.Annotations[taintsAnnotation], n.Spec.Taints = what, taints })
	}
	meta := func(fields ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			m[fields[i].(string)] = fields[i+1]
		}
		return m
	}
	ours := ControlPlaneTaint + ":NoSchedule"
	cases := map[string]struct {
		have        *corev1.Node
		labels      strs
		annotations strs
		taints      []desired.Taint
		want        map[string]any
	}{
		"nothing wanted": {have: node(nil)},
		"all there": {
			have: owned(ours, notReady, byKubeadm), labels: strs{"zone": "a", "absent-": ""},
			annotations: strs{"other": "kept"},
			taints:      []desired.Taint{controlPlane},
		},
		"label new, changed, removed": {
			have: node(nil), labels: strs{"new": "", "zone": "b", "kubernetes.io/hostname-": ""},
			want: meta("metadata", meta("labels", meta("new", "", "zone", "b", "kubernetes.io/hostname", nil))),
		},
		"annotation removed": {
			have: node(nil), annotations: strs{"other-": ""},
			want: meta("metadata", meta("annotations", meta("other", nil))),
		},
		"taint added beside another's": {
			have:   node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{notReady} }),
			taints: []desired.Taint{dedicated},
			want: meta("metadata", meta("annotations", meta(taintsAnnotation, "dedicated:NoExecute"), "resourceVersion",
				"7"),
				"spec", meta("taints", []corev1.Taint{notReady, {Key: "dedicated", Value: "db", Effect: "NoExecute"}})),
		},
		"kubeadm's taint not wanted": {
			have: node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{byKubeadm, notReady} }),
			want: meta("metadata", meta("resourceVersion", "7"), "spec", meta("taints", []corev1.Taint{notReady})),
		},
		"own taint left the manifest": {
			have: owned("dedicated:NoExecute", corev1.Taint{Key: "dedicated", Value: "db", Effect: "NoExecute"}),
			want: meta("metadata", meta("annotations", meta(taintsAnnotation, nil), "resourceVersion", "7"), "spec",
				meta("taints", []corev1.Taint{})),
		},
		"a Machine's Node says that an administrator's taint is its own": {
			have:   owned("dedicated:NoExecute", corev1.Taint{Key: "dedicated", Value: "db", Effect: "NoExecute"}),
			labels: strs{desired.OwnerLabel: "m-1"},
			want:   meta("metadata", meta("labels", meta(desired.OwnerLabel, "m-1"))),
		},
		"another's taint of the same key, other effect": {
			have: owned("dedicated:NoExecute", corev1.Taint{Key: "dedicated", Effect: "NoSchedule"},
				corev1.Taint{Key: "dedicated", Value: "web", Effect: "NoExecute"}),
			taints: []desired.Taint{dedicated},
			want: meta("metadata", meta("resourceVersion", "7"), "spec", meta("taints",
				[]corev1.Taint{
					{Key: "dedicated", Effect: "NoSchedule"},
					{Key: "dedicated", Value: "db", Effect: "NoExecute"},
				})),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, nodePatch(c.have, c.labels, c.annotations, c.taints)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSetNodeMetaWritesOnceAndRetriesAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t, node(nil))
		clustertest.FailOnce(api, "patch", "nodes",
			apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "cp-1", errors.New("changed")))
		for range 2 {
			if err := c.SetNodeMeta(t.Context(), "cp-1", map[string]string{"zone-": "", "rack": "3"}, nil,
				[]desired.Taint{dedicated}); err != nil {
				t.Fatal(err)
			}
		}
		// the conflict and its retry
		if diff := cmp.Diff([]string{"patch nodes", "patch nodes"}, clustertest.Writes(api)); diff != "" {
			t.Error(diff)
		}
		got, err := c.Kubernetes.CoreV1().Nodes().Get(t.Context(), "cp-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"kubernetes.io/hostname": "cp-1", "rack": "3"}, got.Labels); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]corev1.Taint{{Key: "dedicated", Value: "db", Effect: "NoExecute"}},
			got.Spec.Taints); diff != "" {
			t.Error(diff)
		}
	})
}

func setReady(t *testing.T, c Nodes, status corev1.ConditionStatus, message string) {
	t.Helper()
	n, err := c.Kubernetes.CoreV1().Nodes().Get(t.Context(), "cp-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: status, Reason: "Kubelet", Message: message},
	}
	if _, err := c.Kubernetes.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestWaitNodeReadyReturnsWithTheEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t)
		clustertest.FailOnce(api, "list", "nodes", apierrors.NewServiceUnavailable("restarting"))
		result := make(chan error)
		go func() { result <- c.WaitNodeReady(t.Context(), "cp-1") }()
		time.Sleep(time.Second) //nolint:forbidigo // of synctest: no time passes
		if _, err := c.Kubernetes.CoreV1().Nodes().Create(t.Context(), node(nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		setReady(t, c, corev1.ConditionFalse, "no network")
		synctest.Wait()
		changed := time.Now()
		setReady(t, c, corev1.ConditionTrue, "")
		if err := <-result; err != nil || time.Since(changed) > 0 {
			t.Errorf("got %v after %s, want success at once", err, time.Since(changed))
		}
	})
}

func TestWaitNodeReadySaysWhatItLastSaw(t *testing.T) {
	t.Parallel()
	for want, objects := range map[string]func(Nodes){
		"it does not exist":                func(Nodes) {},
		"its kubelet has not reported yet": func(c Nodes) { mustCreate(t, c) },
		"Kubelet: network plugin not ready": func(c Nodes) {
			mustCreate(t, c)
			setReady(t, c, corev1.ConditionFalse, "network plugin not ready")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := faked(t)
			objects(c)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.WaitNodeReady(ctx, "cp-1")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "cp-1") {
				t.Errorf("got %v, want a deadline about cp-1 with %q", err, want)
			}
		})
	}
}

func mustCreate(t *testing.T, c Nodes) {
	t.Helper()
	if _, err := c.Kubernetes.CoreV1().Nodes().Create(context.Background(), node(nil),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestDeleteNodeIsIdempotent(t *testing.T) {
	t.Parallel()
	c, _ := faked(t, node(nil))
	for range 2 {
		if err := c.DeleteNode(t.Context(), "cp-1"); err != nil {
			t.Error(err)
		}
	}
}

func TestWaitNodeSilentEndsWhenTheKubeletDoesNotReport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status corev1.ConditionStatus
		silent bool
	}{
		"ready":     {corev1.ConditionTrue, false},
		"not ready": {corev1.ConditionFalse, false},
		"no report": {corev1.ConditionUnknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Nodes{Kubernetes: kubefake.NewClientset(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "w-1"},
				Status: corev1.NodeStatus{
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: test.status}},
				},
			})}
			ctx := t.Context()
			if !test.silent {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
			}
			if err := c.WaitNodeSilent(ctx, "w-1"); (err == nil) != test.silent {
				t.Errorf("got %v, want silent %t", err, test.silent)
			}
			if err := c.WaitNodeSilent(t.Context(), "gone"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestANodeThatDoesNotComeBackStaysClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := faked(t, node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.WaitNodeVersion(ctx, "cp-1", "1.36.3", "")
		if err == nil || !strings.Contains(err.Error(), "journalctl -u kubelet") ||
			apicall.Classify(err) != apicall.Transient {
			t.Errorf("got %v (%s)", err, apicall.Classify(err))
		}
	})
}
