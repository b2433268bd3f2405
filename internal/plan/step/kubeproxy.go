package step

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// RemoveKubeProxy deletes kube-proxy from the cluster.
const RemoveKubeProxy Kind = "remove-kube-proxy"

func removeKubeProxyRow() row {
	return row{
		kind: RemoveKubeProxy, about: "deletes kube-proxy, whose work the network plugin does",
		place: ThroughAPI, group: groupAddons,
		effect: func(w *World, _ desired.Host, _ Intent) {
			w.Is.API.Pods = slices.DeleteFunc(slices.Clone(w.Is.API.Pods), func(p observed.Pod) bool {
				return p.App == "kube-proxy"
			})
		},
	}
}
