package cluster

import (
	"strconv"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// faked is a client of a fake API that versions objects and refuses outdated updates, as a real one does.
func faked(t *testing.T, objects ...runtime.Object) (*Client, *fake.Clientset) {
	t.Helper()
	api := fake.NewClientset(objects...)
	var version atomic.Int64
	stamp := func(action clienttesting.Action, object runtime.Object) error {
		m, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		if action.GetVerb() == "update" {
			have, err := api.Tracker().Get(action.GetResource(), action.GetNamespace(), m.GetName())
			if err != nil {
				return err
			}
			current, err := meta.Accessor(have)
			if err != nil {
				return err
			}
			if current.GetResourceVersion() != m.GetResourceVersion() {
				return apierrors.NewConflict(action.GetResource().GroupResource(), m.GetName(), nil)
			}
		}
		m.SetResourceVersion(strconv.FormatInt(version.Add(1), 10))
		return nil
	}
	for _, verb := range []string{"create", "update"} {
		api.PrependReactor(verb, "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			err := stamp(action, action.(interface{ GetObject() runtime.Object }).GetObject())
			return err != nil, nil, err
		})
	}
	return &Client{Kubernetes: api}, api
}

// writes are the verbs of the calls that change something, in order.
func writes(api *fake.Clientset) []string {
	var out []string
	for _, action := range api.Actions() {
		switch action.GetVerb() {
		case "get", "list", "watch":
		default:
			out = append(out, action.GetVerb()+" "+action.GetResource().Resource)
		}
	}
	return out
}

// failOnce answers the first call of a verb with an error.
func failOnce(api *fake.Clientset, verb, resource string, err error) {
	var done atomic.Bool
	api.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		if done.CompareAndSwap(false, true) {
			return true, nil, err
		}
		return false, nil, nil
	})
}
