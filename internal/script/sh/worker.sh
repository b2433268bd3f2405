# stage join-worker.

stage_join_worker() {
	if [ -f /etc/kubernetes/kubelet.conf ]; then
		systemctl is-active --quiet kubelet || systemctl start kubelet
	else
		config=$(kubeadm_config file_join)
		kubeadm join --config "$config" --ignore-preflight-errors "$(ignored)"
	fi
	wait_for 240 "the kubelet's /healthz" kubelet_healthy
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
	mark yes
}
