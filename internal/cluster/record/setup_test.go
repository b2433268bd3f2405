package record

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/testutil/clustertest"
)

// faked returns a Store for a fake API.
func faked(t *testing.T, objects ...runtime.Object) (Store, *fake.Clientset) {
	t.Helper()
	api := clustertest.API(objects...)
	return Store{Kubernetes: api}, api
}
