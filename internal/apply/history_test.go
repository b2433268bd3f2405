package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/record"
	"kubeone/internal/locks"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
)

// remembered returns the runs in the history of a fake cluster, without times.
func remembered(t *testing.T, api *fake.Clientset) []record.Run {
	t.Helper()
	record, err := cluster.New(api, nil).Record(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	if record == nil {
		return nil
	}
	return record.History
}

// timeless compares runs, ignoring their times.
var timeless = cmp.Options{
	cmpopts.IgnoreFields(record.Run{}, "Started", "Finished", "PlanDigest"),
	cmpopts.IgnoreFields(record.Step{}, "Began", "Seconds"),
}

// reaching connects a run on hosts to a cluster that answers.
func (l *lab) reaching(api *fake.Clientset) {
	l.Access = &cluster.Access{}
	l.Connect.API = func(cluster.Access) (API, error) { return cluster.New(api, nil), nil }
}

func TestARunIsInTheHistoryFromItsBeginningToItsEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t, "sleep 0.1; [ $1 = prepare ]", prepare(),
		stepOf("images/node-1", "1", step.Images, "prepare/node-1"),
		stepOf("join/node-1", "1", step.JoinWorker, "images/node-1"))
	l.Plan.Routes = []string{"join"}
	api := fake.NewClientset()
	l.reaching(api)
	var begun []record.Run
	l.journal.on = func(e Event) {
		if e.Type == StepDone {
			begun = remembered(t, api)
		}
	}
	err := l.Do(patience(t), nil)
	if err == nil {
		t.Fatal("no error")
	}
	running := record.Run{
		ID: "run-1", Who: "me", From: "here", Routes: []string{"join"}, Result: record.Running, Planned: 3,
	}
	if d := cmp.Diff([]record.Run{running}, begun, timeless); d != "" {
		t.Errorf("while it ran (-want +got):\n%s", d)
	}
	ended := running
	ended.Result = record.Failed
	ended.Steps = []record.Step{
		{ID: "prepare/node-1", Result: record.Done}, {ID: "images/node-1", Result: record.Failed},
		{ID: "join/node-1", Result: record.Skipped},
	}
	got := remembered(t, api)
	if diff := cmp.Diff([]record.Run{ended}, got, timeless, cmpopts.IgnoreFields(record.Run{}, "Error")); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	run := got[0]
	if !strings.HasPrefix(run.Error, "node-1: ") || run.PlanDigest != l.Plan.Digest() ||
		run.Finished.Before(run.Started) {
		t.Errorf("got %+v", run)
	}
	if s := run.Steps[0]; s.Seconds < 0.1 || s.Seconds > 60 || run.Steps[1].Began < s.Seconds {
		t.Errorf("the steps' times are %+v", run.Steps)
	}
}

// Runs of controllers on hosts of Machines neither fill the history nor describe operators' runs.
func TestARunForAMachineIsNotInTheHistory(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		machine string
		want    []string
	}{
		"of the manifest": {want: []string{"apply running", "run-1 done"}},
		"of a Machine":    {machine: "kube-system/pool-1", want: []string{"apply running"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, ":", prepare())
			l.Want = wanted("1")
			l.Want.Workers, l.Want.ControlPlane = l.Want.ControlPlane, nil
			l.Want.Workers[0].Machine = of.machine
			api := fake.NewClientset()
			l.reaching(api)
			running := record.Run{ID: "apply", Result: record.Running, Exclusive: true}
			if err := cluster.New(api, nil).UpdateRecord(patience(t), func(r *record.Record) error {
				r.AddRun(running)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := l.Do(patience(t), nil); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, run := range remembered(t, api) {
				got = append(got, run.ID+" "+string(run.Result))
			}
			if diff := cmp.Diff(of.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if writes := updates(api); of.machine != "" && writes > 0 {
				t.Errorf("the record was written %d times", writes)
			}
		})
	}
}

// updates returns how often the record was written since it was created.
func updates(api *fake.Clientset) int {
	n := 0
	for _, a := range api.Actions() {
		if a.Matches("update", "configmaps") {
			n++
		}
	}
	return n
}

func TestAStoppedAndAnAbortedRunAreInTheHistory(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]record.Run{
		"stopped": {
			Result: record.Stopped,
			Steps: []record.Step{
				{ID: "prepare/node-1", Result: record.Done},
				{ID: "images/node-1", Result: record.Skipped},
			},
		},
		"taken": {Result: record.Interrupted, Error: "another run took the lock",
			Steps: []record.Step{{ID: "prepare/node-1", Result: record.Interrupted}}},
		"aborted": {Result: record.Interrupted,
			Steps: []record.Step{{ID: "prepare/node-1", Result: record.Interrupted}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "", prepare(), stepOf("images/node-1", "1", step.Images, "prepare/node-1"))
			wait, open := l.Gate()
			l.Scripts["1"] = "echo begun; " + wait
			api := fake.NewClientset()
			l.reaching(api)
			ctx, abort := context.WithCancelCause(patience(t))
			defer abort(nil)
			stop := make(chan struct{})
			l.journal.on = func(e Event) {
				switch {
				case e.Line == "begun" && name == "aborted":
					abort(nil)
				case e.Line == "begun" && name == "taken":
					abort(locks.ErrLost)
				case e.Line == "begun":
					close(stop)
				case e.Type == StepSkipped:
					open()
				}
			}
			if err := l.Do(ctx, stop); err == nil {
				t.Error("no error")
			}
			want.ID, want.Who, want.From, want.Planned = "run-1", "me", "here", 2
			if diff := cmp.Diff([]record.Run{want}, remembered(t, api), timeless); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if name != "stopped" {
				open()
			}
		})
	}
}

func TestWhatAStepSavesSaysThatTheRunIsDone(t *testing.T) {
	t.Parallel()
	r, api, _ := onCluster(t, stepOf("record", "", step.SaveRecord))
	calls := 0
	api.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		calls++
		return true, nil,
			apierrors.NewForbidden(corev1.Resource("configmaps"), record.Name, errors.New("not after the step"))
	})
	if err := r.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	want := record.Run{
		ID: "run-1", Who: "me", From: "here", Result: record.Done, Planned: 1,
		Steps: []record.Step{{ID: "record", Result: record.Done}},
	}
	if diff := cmp.Diff([]record.Run{want}, remembered(t, api), timeless); diff != "" || calls == 0 {
		t.Errorf("%d refused (-want +got):\n%s", calls, diff)
	}
}

func TestARunIsTheSameWhenItsHistoryCannotBeWritten(t *testing.T) {
	t.Parallel()
	l := newLab(t, ":", prepare())
	api := fake.NewClientset()
	api.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no"))
	})
	l.reaching(api)
	if err := l.Do(patience(t), nil); err != nil {
		t.Error(err)
	}
}

func TestAResetOfTheClusterWaitsForNoHistory(t *testing.T) {
	t.Parallel()
	l := newLab(t, ":", stepOf("reset/node-1", "1", step.ResetHost))
	l.Want = wanted("1")
	api := fake.NewClientset()
	l.reaching(api)
	if err := l.Do(patience(t), nil); err != nil {
		t.Fatal(err)
	}
	if got := remembered(t, api); len(got) != 1 || got[0].Result != record.Running {
		t.Errorf("got %+v", got)
	}
}

func TestHistoryErrorIsShortAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	one := &StepError{
		Step: plan.Step{Title: "join"},
		Host: "cp-1",
		Tail: []string{"last words"},
		Err:  errors.New("exit status 1"),
	}
	for _, c := range []struct {
		err    error
		result record.Result
		text   string
	}{
		{nil, record.Done, ""},
		{one, record.Failed, "cp-1: join: exit status 1"},
		{errors.Join(one, ErrStopped), record.Failed, "cp-1: join: exit status 1"},
		{errors.Join(ErrStopped), record.Stopped, ""},
		{errors.Join(context.Canceled), record.Interrupted, ""},
		{errors.New("with --token abcdef.0123456789abcdef"), record.Failed, "with --token [removed]"},
		{errors.New(strings.Repeat("é", 2000)), record.Failed, strings.Repeat("é", 298) + "..."},
	} {
		if got := resultOf(c.err); got != c.result {
			t.Errorf("%v: %s", c.err, got)
		}
		if got := problemOf(c.err); got != c.text {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}

func TestFinishedStepsBecomeEventsOfTheirNodes(t *testing.T) {
	t.Parallel()
	up := stepOf("upgrade/node-1", "1", step.UpgradeWorker)
	up.Title, up.Reason = "upgrade to 1.36.3", "kubelet 1.35.4, want 1.36.3"
	fails := stepOf("restart/node-1", "1", step.RestartUnits, "upgrade/node-1")
	fails.Title = "start units"
	l := newLab(t, "[ $1 != restart-units ]", prepare(), up, fails)
	api := fake.NewClientset()
	refused := 0
	api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		refused++
		return refused == 1, nil, apierrors.NewServiceUnavailable("restarting") // retried
	})
	l.reaching(api)
	if err := l.Do(patience(t), nil); err == nil {
		t.Fatal("no error")
	}
	events, err := api.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events.Items {
		message, _, _ := strings.Cut(e.Message, " in ")
		message, _, _ = strings.Cut(message, " after ")
		got = append(got, fmt.Sprint(e.Type, " ", e.Reason, " ", e.InvolvedObject.Name, ": ", message))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"Normal KubeOneUpgraded node-1: upgrade to 1.36.3: done", "Warning KubeOneFailed " +
		"node-1: start units: failed"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
