package addons

import (
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// newDNSBudgetAddon returns the PodDisruptionBudget for the cluster DNS servers. It sets maxUnavailable instead of
// minAvailable, so that a single server can also be drained.
func newDNSBudgetAddon() (Addon, error) {
	return newAddon(desired.DNSBudgetAddon, nil, []resources.Object{{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
		"metadata": map[string]any{"name": "coredns", "namespace": "kube-system"},
		"spec": map[string]any{
			"maxUnavailable": 1,
			"selector":       map[string]any{"matchLabels": map[string]any{"k8s-app": "kube-dns"}},
		},
	}})
}
