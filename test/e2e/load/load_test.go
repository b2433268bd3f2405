package load

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestOutageEndsWithNextSuccess(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	down := errors.New("down")
	var o Outages
	for _, r := range []struct {
		began, ended int
		err          error
	}{{0, 1, nil}, {1, 2, down}, {3, 4, down}, {4, 6, nil}, {6, 7, nil}, {7, 8, down}} {
		o.noteRequest(at(r.began), at(r.ended), r.err)
	}
	want := Outages{Asked: 6, Failed: 3, Count: 2, Longest: 5, Sum: 8, LastError: "down"}
	if diff := cmp.Diff(want, o.closedAt(at(10)), cmpopts.IgnoreUnexported(Outages{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRetriedRequestHasNotFailed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		failures int
		want     calls
	}{
		{0, calls{Requests: 1}},
		{2, calls{Requests: 1, Retries: 2}},
		{3, calls{Requests: 1, Retries: 3, Failed: 1}},
	} {
		c, tries := calls{Errors: map[string]int{}}, 0
		served := c.attemptRequest(t.Context(), func(context.Context) error {
			if tries++; tries <= test.failures {
				return errors.New("not now")
			}
			return nil
		})
		if !served {
			t.Errorf("%d failures: not served", test.failures)
		}
		if diff := cmp.Diff(test.want, c, cmpopts.IgnoreFields(calls{}, "Slowest", "Errors")); diff != "" {
			t.Errorf("%d failures (-want +got):\n%s", test.failures, diff)
		}
	}
}

func TestInterruptedAttemptIsIgnored(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := calls{Errors: map[string]int{}}
	if c.attemptRequest(ctx, func(context.Context) error { cancel(); return errors.New("cut") }) {
		t.Error("it counts as served")
	}
	if diff := cmp.Diff(calls{Errors: map[string]int{}}, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// podInState returns a pod as a watch shows it.
func podInState(name string, ready, ending bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if ending {
		now := metav1.Now()
		p.DeletionTimestamp = &now
	}
	return p
}

func TestGuardDistinguishesEvictions(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f"}
	for name, test := range map[string]struct {
		changes              []corev1.Pod
		evictions, otherwise int
	}{
		"one eviction is allowed": {[]corev1.Pod{podInState("a", true, true)}, 0, 0},
		"two at a time are not": {
			[]corev1.Pod{podInState("a", true, true), podInState("b", true, true), podInState("c", true, true)},
			1,
			0,
		},
		"one after the other": {
			[]corev1.Pod{podInState("a", true, true), podInState("g", true, false), podInState("b", true, true)},
			0,
			0,
		},
		"a replacement is not there yet": {
			[]corev1.Pod{podInState("a", true, true), podInState("g", false, false), podInState("b", true, true)},
			1,
			0,
		},
		"two that fail were not evicted": {[]corev1.Pod{podInState("a", false, false), podInState("b", false, false)},
			0,
			1},
		"one evicted while another one fell": {[]corev1.Pod{podInState("a", true, true), podInState("b", false, false)},
			0,
			1},
	} {
		g := newGuard(nil)
		var all []corev1.Pod
		for _, n := range names {
			all = append(all, podInState(n, true, false))
		}
		g.replacePods(all)
		for _, p := range test.changes {
			g.changePod(watch.Modified, p)
		}
		got := g.reportPods()
		if len(got.ByEviction) != test.evictions || len(got.Otherwise) != test.otherwise {
			t.Errorf("%s: by eviction %q, otherwise %q; want %d and %d", name, got.ByEviction, got.Otherwise,
				test.evictions, test.otherwise)
		}
	}
}

func TestBrokenBudgetCountsOnce(t *testing.T) {
	t.Parallel()
	g := newGuard(nil)
	for _, healthy := range []int32{6, 5, 4, 3, 5, 4} {
		g.noteHealthy(policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: healthy}})
	}
	if got := g.reportPods(); got.BudgetBroken != 2 || got.LeastHealthy != 3 {
		t.Errorf("broken %d times, %d healthy at least; want 2 and 3", got.BudgetBroken, got.LeastHealthy)
	}
}

func TestReportErr(t *testing.T) {
	t.Parallel()
	good := func() Report {
		return Report{Client: Client{Acknowledged: 9}, Pods: &Pods{LeastReady: 5}, Requests: &Outages{}}
	}
	if err := good().Err(); err != nil {
		t.Errorf("a good report: %v", err)
	}
	for say, spoil := range map[string]func(*Report){
		"nothing was written":             func(r *Report) { r.Client.Acknowledged = 0 },
		"2 acknowledged writes were lost": func(r *Report) { r.Client.Lost = []int{4, 5} },
		"read 3 after 4": func(r *Report) {
			r.Client.Wrong = []string{"read 3 after 4 was acknowledged"}
		},
		"1 requests failed":              func(r *Report) { r.Client.Failed = 1 },
		"evictions broke the disruption": func(r *Report) { r.Pods.ByEviction = []string{"12:00:00"} },
	} {
		r := good()
		spoil(&r)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("want %q, got %v", say, err)
		}
	}
}

func TestStarvedMachineIgnoresLatency(t *testing.T) {
	t.Parallel()
	r := Report{Seconds: 60, Starved: 0.9, Client: Client{Acknowledged: 9, calls: calls{Failed: 1}}}
	if err := r.Err(); err != nil {
		t.Errorf("got %v", err)
	}
	if text := r.String(); !strings.Contains(text, "NOT JUDGED") || !strings.Contains(text, "90 %") {
		t.Errorf("the report says\n%s", text)
	}
	r.Client.Lost = []int{4}
	if err := r.Err(); err == nil {
		t.Error("a write that was lost is let pass")
	}
	r.Client.Lost, r.Starved = nil, 0.5
	if err := r.Err(); err == nil || strings.Contains(r.String(), "NOT JUDGED") {
		t.Errorf("a machine that is not starved: %v", err)
	}
}
