# stage join-worker: the host becomes a worker. It resumes what an earlier run has left.

stage_join_worker() {
	if [ ! -s /etc/kubernetes/kubelet.conf ] || [ ! -s "$CLIENT_CERT" ]; then
		# kubelet.conf is written first. Without it, a certificate is of an earlier life of this host, but the kubelet would
		# use it.
		[ -s /etc/kubernetes/kubelet.conf ] || rm -f /etc/kubernetes/kubelet.conf "$CLIENT_CERT"
		# kubeadm would use an empty file.
		[ -s /etc/kubernetes/pki/ca.crt ] || rm -f /etc/kubernetes/pki/ca.crt
		forget_bootstrap_key
		config=$(kubeadm_config file_join)
		kubeadm join phase preflight --config "$config" --ignore-preflight-errors "$(ignored)"
		kubeadm join phase kubelet-start --config "$config"
	else
		if ! dials /etc/kubernetes/kubelet.conf "$ENDPOINT"; then # an earlier attempt used another endpoint
			systemctl stop kubelet
			kubelet_asks "$ENDPOINT"
		fi
		# The kubelet may have refused the settings of an earlier attempt. write_kubelet needs the Node.
		if [ -s /var/lib/kubelet/config.yaml ] && node_there; then
			write_kubelet
		else
			config=$(kubeadm_config file_join)
			kubeadm join phase kubelet-start --config "$config"
		fi
		# A kubelet creates its Node only when it starts. The Node of an earlier attempt may have been deleted, or the cluster
		# recreated.
		systemctl reset-failed kubelet.service 2>/dev/null || true
		systemctl restart kubelet
	fi
	kubelet_bootstrapped
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
	mark yes
	rm -f "$UPGRADING" # of an earlier life of this host
}

# node_there succeeds if this host's Node exists. Recoveries and operators delete Nodes.
node_there() { asked /etc/kubernetes/kubelet.conf "$ENDPOINT" "/api/v1/nodes/$NODE_NAME" >/dev/null 2>&1; }

# forget_bootstrap_key stops the kubelet and removes the key of its certificate request. With that key it would keep
# waiting for the old request, which is not approved once its token is revoked.
forget_bootstrap_key() {
	systemctl stop kubelet.service 2>/dev/null || true
	rm -f /var/lib/kubelet/pki/kubelet-client.key.tmp
}

# kubelet_bootstrapped waits until the kubelet has its certificate, and then restarts it. Meanwhile the kubelet has
# asked for Services and more without credentials; it retries that, and pods that failed, only after growing pauses.
# After a restart with its certificate it gets everything at once.
kubelet_bootstrapped() {
	wait_for 240 "the kubelet's /healthz" kubelet_healthy
	wait_for 300 "the kubelet's client certificate" test -s "$CLIENT_CERT"
	wait_for 60 "the kubelet's kubelet.conf" test -s /etc/kubernetes/kubelet.conf
	if [ -f /etc/kubernetes/bootstrap-kubelet.conf ]; then
		systemctl restart kubelet
		rm -f /etc/kubernetes/bootstrap-kubelet.conf
	fi
	wait_for 240 "the kubelet's /healthz" kubelet_healthy
}
