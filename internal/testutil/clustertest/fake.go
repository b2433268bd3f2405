// Package clustertest is a fake API server for tests.
package clustertest

import (
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// API returns a fake API that versions objects and refuses outdated updates, as a real one does.
func API(objects ...runtime.Object) *fake.Clientset {
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
	return api
}

// Writes returns the verbs of the modifying calls in order.
func Writes(api *fake.Clientset) []string {
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

// FailOnce fails the first call of a verb.
func FailOnce(api *fake.Clientset, verb, resource string, err error) {
	var done atomic.Bool
	api.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		if done.CompareAndSwap(false, true) {
			return true, nil, err
		}
		return false, nil, nil
	})
}

// Node returns a Node after change; change may be nil.
func Node(change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "cp-1", ResourceVersion: "7",
		Labels:      map[string]string{"kubernetes.io/hostname": "cp-1", "zone": "a"},
		Annotations: map[string]string{"other": "kept"},
	}}
	if change != nil {
		change(n)
	}
	return n
}
