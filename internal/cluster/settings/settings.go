// Package settings changes the settings of kube-proxy, cluster DNS and the API endpoint in objects that kubeadm
// applied.
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

// ConfigAnnotation on kube-proxy pods contains the version of the ConfigMap for which they were restarted.
const ConfigAnnotation = "kubeone.k8c.io/config-changed-at"

// Setter changes these settings.
type Setter struct {
	Kubernetes kubernetes.Interface
}

// Change returns the desired configuration and kubeconfig of kube-proxy. It may be called again after a conflict.
type Change func(config, kubeconfig string) (newConfig, newKubeconfig string, err error)

// SetKubeProxy changes the kube-proxy ConfigMap and restarts the pods, which read it only at startup. The ConfigMap is
// marked from its change until the DaemonSet is changed, so that a later call can resume an interrupted one. The
// DaemonSet controller replaces the pods within maxUnavailable.
func (s Setter) SetKubeProxy(ctx context.Context, change Change) error {
	const op, name = "set the configuration of", "kube-proxy"
	maps := s.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	var mark string // the changed version; "" if no restart is needed
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

// restartDaemonSet restarts the pods of a DaemonSet in kube-system once for each mark. If the DaemonSet does not exist,
// it returns nil, because its pods will start with the new configuration.
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

// annotationPatch returns a merge patch that sets one annotation; nil removes the annotation.
func annotationPatch(key string, value any) []byte {
	body, _ := json.Marshal(map[string]any{ // strings and nil cannot fail
		"metadata": map[string]any{"annotations": map[string]any{key: value}},
	})
	return body
}

// ScaleDNS calls want with the current number of DNS servers and scales the Deployment to the result.
func (s Setter) ScaleDNS(ctx context.Context, want func(have int32) int32) error {
	deployments := s.Kubernetes.AppsV1().Deployments(system.Namespace)
	return apicall.Retry(ctx, "scale", system.DNSDeployment, func(ctx context.Context) error {
		held, err := deployments.Get(ctx, system.DNSDeployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		have := int32(1) // the API's default
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
