# stage join-worker.

stage_join_worker() {
	config=$(kubeadm_config file_join)
	kubeadm join phase preflight --config "$config" --ignore-preflight-errors "$(ignored)"
	if [ ! -f /etc/kubernetes/kubelet.conf ]; then
		kubeadm join phase kubelet-start --config "$config"
	fi
	kubeadm join phase kubelet-wait-bootstrap --config "$config"
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
	mark yes
}
