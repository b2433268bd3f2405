# stage join-worker.

stage_join_worker() {
	if [ ! -s /etc/kubernetes/kubelet.conf ] || [ ! -s "$CLIENT_CERT" ]; then
		# Without a kubelet.conf, which is written first, a certificate is of another life of this host; the kubelet would take it.
		[ -s /etc/kubernetes/kubelet.conf ] || rm -f /etc/kubernetes/kubelet.conf "$CLIENT_CERT"
		# kubeadm takes what is there for whole.
		[ -s /etc/kubernetes/pki/ca.crt ] || rm -f /etc/kubernetes/pki/ca.crt
		forget_bootstrap_key
		config=$(kubeadm_config file_join)
		kubeadm join phase preflight --config "$config" --ignore-preflight-errors "$(ignored)"
		kubeadm join phase kubelet-start --config "$config"
	else
		if ! dials /etc/kubernetes/kubelet.conf "$ENDPOINT"; then # it has begun to join by another one
			systemctl stop kubelet
			kubelet_asks "$ENDPOINT"
		fi
		# What an earlier attempt has given the kubelet may be of another manifest, and refused. kubeadm's upgrade reads the Node.
		if [ -s /var/lib/kubelet/config.yaml ] && node_there; then
			write_kubelet
		else
			config=$(kubeadm_config file_join)
			kubeadm join phase kubelet-start --config "$config"
		fi
		# A kubelet makes its Node when it starts, and only then: the one of an earlier attempt may be gone, or of a cluster that
		# has begun anew since.
		systemctl reset-failed kubelet.service 2>/dev/null || true
		systemctl restart kubelet
	fi
	kubelet_bootstrapped
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
	mark yes
	rm -f "$UPGRADING" # whatever this host was before
}

# node_there succeeds when this host's Node is known to be there. A recovery deletes Nodes, and so do people.
node_there() { asked /etc/kubernetes/kubelet.conf "$ENDPOINT" "/api/v1/nodes/$NODE_NAME" >/dev/null 2>&1; }

# forget_bootstrap_key stops the kubelet and removes the key with which it has asked with a join token: with that key it would
# go on waiting for the old request, and nobody approves one whose token was revoked.
forget_bootstrap_key() {
	systemctl stop kubelet.service 2>/dev/null || true
	rm -f /var/lib/kubelet/pki/kubelet-client.key.tmp
}

# kubelet_bootstrapped waits until a kubelet that asks with a join token has its certificate, and then starts it anew. It has asked
# for Services and more as nobody meanwhile, and asks again only after pauses that grow; pods that come first fail, and begin
# again only after a pause of their own. Started with its certificate it has everything at once.
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
