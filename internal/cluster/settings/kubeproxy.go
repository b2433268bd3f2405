package settings

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/cluster/apicall"
)

// RemoveKubeProxy deletes kube-proxy as kubeadm applied it. The DaemonSet goes first, so that an interrupted call
// leaves pods with their permissions. Without the ConfigMap, an upgrade with kubeadm does not bring kube-proxy back.
func (s Setter) RemoveKubeProxy(ctx context.Context) error {
	const op, name = "delete", "kube-proxy"
	policy := metav1.DeletePropagationForeground
	options := metav1.DeleteOptions{PropagationPolicy: &policy}
	for _, remove := range []func(context.Context) error{
		func(ctx context.Context) error {
			return s.Kubernetes.AppsV1().DaemonSets(metav1.NamespaceSystem).Delete(ctx, name, options)
		},
		func(ctx context.Context) error {
			return s.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, name, options)
		},
		func(ctx context.Context) error {
			return s.Kubernetes.RbacV1().RoleBindings(metav1.NamespaceSystem).Delete(ctx, name, options)
		},
		func(ctx context.Context) error {
			return s.Kubernetes.RbacV1().Roles(metav1.NamespaceSystem).Delete(ctx, name, options)
		},
		func(ctx context.Context) error {
			return s.Kubernetes.RbacV1().ClusterRoleBindings().Delete(ctx, "kubeadm:node-proxier", options)
		},
		func(ctx context.Context) error {
			return s.Kubernetes.CoreV1().ServiceAccounts(metav1.NamespaceSystem).Delete(ctx, name, options)
		},
	} {
		err := apicall.Retry(ctx, op, name, func(ctx context.Context) error {
			if err := remove(ctx); !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
