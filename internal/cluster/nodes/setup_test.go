package nodes

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/testutil/clustertest"
)

// faked returns Nodes for a fake API.
func faked(t *testing.T, objects ...runtime.Object) (Nodes, *fake.Clientset) {
	t.Helper()
	api := clustertest.API(objects...)
	return Nodes{Kubernetes: api}, api
}
