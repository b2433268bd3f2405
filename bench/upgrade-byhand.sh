#!/bin/bash
# The upgrade of a cluster by hand: what kubeadm's documentation tells an operator to do, host after host, as one script
# over ssh. Files and images are on every host before the first one is touched, and every wait names a condition. The
# container runtime and the kubelet are changed while the node is drained, together, so that it is drained once.
#
# Beside what byhand-ssh.sh reads, the environment says: VERSION and PAUSE (the pause image). Lines "stage NAME HOST" on standard
# output say what begins.
# shellcheck disable=SC1091,SC2154 # what is sourced is checked by itself
. "$(dirname "$0")/byhand-ssh.sh"

# bring HOST ROLE takes to a host what its upgrade needs, and changes nothing there.
bring() {
	stage copy "$1"
	copy "$1" "$2"
	on "$1" "cd release && sha256sum --quiet -c SHA256SUMS-$2"
	stage import "$1"
	import_images "$1" "$2"
}

# swap HOST puts container runtime and kubelet of the new version in the place of the old ones.
swap() {
	ssh "${options[@]}" "$SSH_USER@$1" bash -seu "$PAUSE" <<'END'
cd release
systemctl stop kubelet containerd
tar -xzf containerd.tar.gz -C /usr/local
install -m 0755 runc /usr/local/sbin/runc
sed -i "s|^sandbox = .*|sandbox = \"$1\"|" /etc/containerd/config.toml
install -m 0755 -t /usr/local/bin kubelet
[ ! -f kubectl ] || install -m 0755 -t /usr/local/bin kubectl
systemctl daemon-reload
systemctl start containerd kubelet
END
}

# upgrade HOST COMMAND upgrades one host; the command is what kubeadm is to do there.
upgrade() {
	local node
	node=$(on "$1" hostname)
	stage kubeadm "$1"
	on "$1" "install -m 0755 -t /usr/local/bin release/kubeadm && kubeadm upgrade $2 $ignore >/dev/null"
	stage drain "$1"
	on "$leader" "$kubectl drain $node --ignore-daemonsets --delete-emptydir-data --timeout=5m >/dev/null"
	stage swap "$1"
	swap "$1"
	stage ready "$1"
	on "$leader" "$kubectl wait --for=jsonpath='{.status.nodeInfo.kubeletVersion}'=v$VERSION node/$node --timeout=5m >/dev/null &&
		$kubectl wait --for=condition=Ready node/$node --timeout=5m >/dev/null"
	stage uncordon "$1"
	on "$leader" "$kubectl uncordon $node >/dev/null"
}

for host in "${control_planes[@]}"; do bring "$host" control-plane; done
for host in "${workers[@]}"; do bring "$host" worker; done
upgrade "$leader" "apply v$VERSION --yes"
for host in "${control_planes[@]:1}" "${workers[@]}"; do upgrade "$host" node; done
stage end
on "$leader" "$kubectl wait --for=condition=Ready nodes --all --timeout=5m >/dev/null &&
	$kubectl -n kube-system rollout status daemonset/kube-proxy --timeout=5m >/dev/null &&
	$kubectl -n kube-system wait --for=condition=Available deployment/coredns --timeout=5m >/dev/null"
