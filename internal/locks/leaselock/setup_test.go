package leaselock

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/testutil/clustertest"
)

// faked returns a Locker of a fake API.
func faked(t *testing.T, objects ...runtime.Object) (Locker, *fake.Clientset) {
	t.Helper()
	api := clustertest.API(objects...)
	return Locker{Kubernetes: api}, api
}
