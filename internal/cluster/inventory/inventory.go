// Package inventory applies and removes addons. It keeps an inventory of the objects of each addon in the cluster, so
// that objects that are no longer part of an addon can be found and deleted.
package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/model/observed"
)

const (
	// namePrefix and the name of the addon are the name of its inventory, a ConfigMap in kube-system.
	namePrefix = "kubeone-addon-"
	// label is on every inventory. Its value is the name of the addon.
	label = "kubeone.k8c.io/inventory"
	// objectsKey holds the objects as a JSON array of observed.AddonObject.
	objectsKey = "objects"

	maxObjects  = 20_000
	maxNameSize = 253
)

// List reads the inventories of all addons, by addon. An inventory that cannot be read has a Problem.
func List(ctx context.Context, kube kubernetes.Interface) (map[string]observed.Inventory, error) {
	list, err := kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, err
	}
	out := map[string]observed.Inventory{}
	for i := range list.Items {
		if name, found := strings.CutPrefix(list.Items[i].Name, namePrefix); found {
			out[name] = decodeInventory(&list.Items[i])
		}
	}
	return out, nil
}

// decodeInventory decodes an inventory strictly, because anyone who can write ConfigMaps may have changed it.
func decodeInventory(m *corev1.ConfigMap) observed.Inventory {
	var objects []observed.AddonObject
	if err := json.Unmarshal([]byte(m.Data[objectsKey]), &objects); err != nil {
		return observed.Inventory{Problem: fmt.Sprintf("ConfigMap %s/%s: %v", m.Namespace, m.Name, err)}
	}
	if len(objects) > maxObjects {
		return observed.Inventory{Problem: fmt.Sprintf("ConfigMap %s/%s: more than %d objects", m.Namespace, m.Name,
			maxObjects)}
	}
	for i, o := range objects {
		if !isWord(o.APIVersion) || !isWord(o.Kind) || o.Namespace != "" && !isWord(o.Namespace) || !isWord(o.Name) {
			return observed.Inventory{Problem: fmt.Sprintf("ConfigMap %s/%s: objects[%d] is not valid", m.Namespace,
				m.Name, i)}
		}
	}
	return observed.Inventory{Objects: objects}
}

// isWord reports whether the text can be part of the identity of an object.
func isWord(text string) bool {
	return text != "" && len(text) <= maxNameSize &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// newReference returns an object with the identity alone.
func newReference(of observed.AddonObject) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(of.APIVersion)
	o.SetKind(of.Kind)
	o.SetNamespace(of.Namespace)
	o.SetName(of.Name)
	return o
}

func (k Keeper) readInventory(ctx context.Context, addon string) (observed.Inventory, error) {
	var out observed.Inventory
	err := apicall.Retry(ctx, "read the inventory of addon", addon, func(ctx context.Context) error {
		held, err := k.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, namePrefix+addon,
			metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		out = decodeInventory(held)
		return nil
	})
	return out, err
}

// saveInventory writes the inventory if it differs from the stored one.
func (k Keeper) saveInventory(ctx context.Context, addon string, objects []observed.AddonObject) error {
	text, err := json.Marshal(objects)
	if err != nil {
		return err
	}
	want := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: namePrefix + addon, Namespace: metav1.NamespaceSystem, Labels: map[string]string{label: addon},
		},
		Data: map[string]string{objectsKey: string(text)},
	}
	return apicall.Retry(ctx, "save the inventory of addon", addon, func(ctx context.Context) error {
		maps := k.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem)
		held, err := maps.Get(ctx, want.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, want, metav1.CreateOptions{FieldManager: apicall.FieldManager})
			return err
		}
		if err != nil {
			return err
		}
		if held.Data[objectsKey] == want.Data[objectsKey] && held.Labels[label] == addon {
			return nil
		}
		want.ResourceVersion = held.ResourceVersion
		_, err = maps.Update(ctx, want, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		return err
	})
}

func (k Keeper) deleteInventory(ctx context.Context, addon string) error {
	return apicall.Retry(ctx, "delete the inventory of addon", addon, func(ctx context.Context) error {
		err := k.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, namePrefix+addon,
			metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// withoutKeys returns the objects whose keys are not among those of others.
func withoutKeys(objects, others []observed.AddonObject) []observed.AddonObject {
	keys := map[string]bool{}
	for _, o := range others {
		keys[o.Key()] = true
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o observed.AddonObject) bool { return keys[o.Key()] })
}
