package addons

import (
	"kubeone/internal/addons/resources"
	"kubeone/internal/model/desired"
)

// newDNSBudgetAddon is the PodDisruptionBudget of the cluster's DNS servers. It sets a maximum, not a minimum, so that
// a single server can be drained too.
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
