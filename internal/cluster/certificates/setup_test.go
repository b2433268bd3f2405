package certificates

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/testutil/clustertest"
)

// faked returns an Approver for a fake API.
func faked(t *testing.T, objects ...runtime.Object) (Approver, *fake.Clientset) {
	t.Helper()
	api := clustertest.API(objects...)
	return Approver{Kubernetes: api}, api
}
