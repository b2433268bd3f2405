package drain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/testutil/clustertest"
)

// faked returns a Drainer for a fake API.
func faked(t *testing.T, objects ...runtime.Object) (Drainer, *fake.Clientset) {
	t.Helper()
	api := clustertest.API(objects...)
	return Drainer{Kubernetes: api}, api
}

func node(change func(*corev1.Node)) *corev1.Node { return clustertest.Node(change) }
