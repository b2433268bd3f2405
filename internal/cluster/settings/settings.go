// Package settings sets what is said of kube-proxy and cluster DNS in the objects that kubeadm has applied.
package settings

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kubeone/internal/addons/system"
	"kubeone/internal/cluster/apicall"
)

// ConfigAnnotation on the pods of kube-proxy is the version of its ConfigMap for whose change they began anew.
const ConfigAnnotation = "kubeone.k8c.io/config-changed-at"

// Setter sets them.
type Setter struct {
	Kubernetes kubernetes.Interface
}

// Change returns kube-proxy's configuration and kubeconfig as they are to be. It may be called again when somebody else
// wrote at the same time.
type Change func(config, kubeconfig string) (newConfig, newKubeconfig string, err error)

// SetKubeProxy changes kube-proxy's ConfigMap, and has the pods of its DaemonSet begin anew, since they read it once.
// The ConfigMap is marked from its change until the DaemonSet has got it, so that whoever is interrupted in between is
// gone on with. Pods are replaced by the DaemonSet's controller, as many at a time as the DaemonSet says.
func (s Setter) SetKubeProxy(ctx context.Context, change Change) error {
	const op, name = "set the configuration of", "kube-proxy"
	maps := s.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	var mark string // the version that was changed; "" where nothing is to begin anew
	err := apicall.Retry(ctx, op, name, func(ctx context.Context) error {
		held, err := maps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		config, kubeconfig := held.Data[system.ProxyConfig], held.Data[system.ProxyKubeconfig]
		newConfig, newKubeconfig, err := change(config, kubeconfig)
		if err != nil {
			return err
		}
		mark = held.Annotations[system.RestartAnnotation]
		if newConfig == config && newKubeconfig == kubeconfig {
			return nil
		}
		if held.Annotations == nil {
			held.Annotations = map[string]string{}
		}
		if held.Data == nil {
			held.Data = map[string]string{}
		}
		mark = held.ResourceVersion
		held.Annotations[system.RestartAnnotation] = mark
		held.Data[system.ProxyConfig] = newConfig
		if newKubeconfig != "" {
			held.Data[system.ProxyKubeconfig] = newKubeconfig
		}
		_, err = maps.Update(ctx, held, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
		return err
	})
	if err != nil || mark == "" {
		return err
	}
	if err := s.restartDaemonSet(ctx, name, mark); err != nil {
		return err
	}
	return apicall.Retry(ctx, op, name, func(ctx context.Context) error {
		_, err := maps.Patch(ctx, name, types.MergePatchType, annotationPatch(system.RestartAnnotation, nil),
			metav1.PatchOptions{FieldManager: apicall.FieldManager})
		return err
	})
}

// restartDaemonSet has the pods of a DaemonSet of kube-system begin anew, once for each mark. Where there is no such
// DaemonSet its pods begin with what is said then.
func (s Setter) restartDaemonSet(ctx context.Context, name, mark string) error {
	patch := map[string]any{"spec": map[string]any{"template": json.RawMessage(annotationPatch(ConfigAnnotation,
		mark))}}
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return apicall.Retry(ctx, "restart the pods of", name, func(ctx context.Context) error {
		_, err := s.Kubernetes.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, name, types.MergePatchType, body,
			metav1.PatchOptions{FieldManager: apicall.FieldManager})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// annotationPatch is a merge patch of one annotation; nil removes it.
func annotationPatch(key string, value any) []byte {
	body, _ := json.Marshal(map[string]any{ // texts and nil can be encoded
		"metadata": map[string]any{"annotations": map[string]any{key: value}},
	})
	return body
}

// ScaleDNS makes the number of DNS servers what want says of the number that there is.
func (s Setter) ScaleDNS(ctx context.Context, want func(have int32) int32) error {
	deployments := s.Kubernetes.AppsV1().Deployments(system.Namespace)
	return apicall.Retry(ctx, "scale", system.DNSDeployment, func(ctx context.Context) error {
		held, err := deployments.Get(ctx, system.DNSDeployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		have := int32(1) // what the API takes for a number that is not there
		if held.Spec.Replicas != nil {
			have = *held.Spec.Replicas
		}
		replicas := want(have)
		if replicas == have {
			return nil
		}
		body, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": replicas}})
		if err != nil {
			return err
		}
		_, err = deployments.Patch(ctx, system.DNSDeployment, types.MergePatchType, body,
			metav1.PatchOptions{FieldManager: apicall.FieldManager})
		return err
	})
}
