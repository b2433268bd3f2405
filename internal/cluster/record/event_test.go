package record

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/testutil/clustertest"
)

func TestEventsAreOfTheNode(t *testing.T) {
	t.Parallel()
	c, api := faked(t)
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, e := range []Event{
		{Node: "cp-1", Reason: "KubeOneUpgraded", Message: "to 1.36.3", RunID: "run-1", Time: when},
		{Node: "cp-1", Reason: "KubeOneDrained", Message: strings.Repeat("é", 2000), RunID: "run-1", Time: when,
			Warning: true},
	} {
		if err := c.WriteEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	events, err := api.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, e := range events.Items {
		kinds[e.Reason] = e.Type
		if diff := cmp.Diff(corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: "cp-1", UID: "cp-1"},
			e.InvolvedObject); diff != "" {
			t.Error(diff)
		}
		if e.ReportingController != "kubeone" || e.Source.Component != "kubeone" || !e.LastTimestamp.Time.Equal(when) {
			t.Errorf("got %+v", e)
		}
		if len(e.Message) > 1024 || !utf8.ValidString(e.Message) || e.Message == "" {
			t.Errorf("a message of %d bytes", len(e.Message))
		}
	}
	if diff := cmp.Diff(map[string]string{"KubeOneUpgraded": "Normal", "KubeOneDrained": "Warning"},
		kinds); diff != "" {
		t.Error(diff)
	}
}

func TestAnEventIsTriedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t)
		clustertest.FailOnce(api, "create", "events", errors.New("no"))
		began := time.Now()
		if err := c.WriteEvent(t.Context(), Event{Node: "cp-1", Reason: "KubeOneJoined"}); err == nil ||
			time.Since(began) > 0 {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}
