package record

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/testutil/clustertest"
)

// faked is a Store of a fake API.
func faked(t *testing.T, objects ...runtime.Object) (Store, *fake.Clientset) {
	t.Helper()
	api := clustertest.API(objects...)
	return Store{Kubernetes: api}, api
}
