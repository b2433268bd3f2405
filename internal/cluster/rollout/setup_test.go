package rollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/testutil/clustertest"
)

// faked returns a Waiter for a fake API.
func faked(t *testing.T, objects ...runtime.Object) (Waiter, *fake.Clientset) {
	t.Helper()
	api := clustertest.API(objects...)
	return Waiter{Kubernetes: api}, api
}
