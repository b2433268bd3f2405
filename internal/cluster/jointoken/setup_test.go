package jointoken

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/testutil/clustertest"
)

// faked returns an Issuer for a fake API.
func faked(t *testing.T, objects ...runtime.Object) (Issuer, *fake.Clientset) {
	t.Helper()
	api := clustertest.API(objects...)
	return Issuer{Kubernetes: api}, api
}
