package engine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/record"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/clustertest"
)

// An unreadable history is not an empty one, and another unreadable key does not hide it.
func TestOnlyTheHistorysOwnKeyHidesIt(t *testing.T) {
	t.Parallel()
	for key, hides := range map[string]bool{observed.RecordNodes: false, observed.RecordHistory: true} {
		data := map[string]string{observed.RecordHistory: `[{"id":"run-1","result":"done"}]`}
		data[key] = "x"
		runs, err := Runs(t.Context(), cluster.New(clustertest.API(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: record.Name, Namespace: metav1.NamespaceSystem}, Data: data,
		}), nil), observed.World{})
		if hides && (err == nil || !strings.Contains(err.Error(), "the key history of the ConfigMap")) ||
			!hides && (err != nil || len(runs) != 1) {
			t.Errorf("%s: %v, %v", key, runs, err)
		}
	}
}
