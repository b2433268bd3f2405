#!/bin/bash
# Installs a highly available cluster by hand: the steps of kubeadm's documentation, host after host, over ssh and scp.
# It is as fast as a script can be: one multiplexed connection for each host, no unnecessary copies, and waits for
# conditions. Before each stage it prints a line "stage NAME HOST".
#
# Environment, set by bench:
#
#	CONTROL_PLANE_HOSTS, WORKER_HOSTS  addresses, separated by spaces
#	SSH_USER, SSH_KEY, KNOWN_HOSTS     user and files for ssh
#	RELEASE                            directory with binaries, images-ROLE.tar, SHA256SUMS-ROLE and flannel.yaml
#	ENDPOINT                           HOST:PORT of the load balancer
#	VERSION                            Kubernetes version, without "v"
#	PAUSE                              name of the pause image
#	POD_SUBNET, SERVICE_SUBNET         CIDRs
set -euo pipefail

control=$(mktemp -d)
options=(
	-i "$SSH_KEY" -o IdentitiesOnly=yes -o UserKnownHostsFile="$KNOWN_HOSTS" -o StrictHostKeyChecking=yes -o LogLevel=ERROR
	-o Ciphers=aes128-gcm@openssh.com -o ControlMaster=auto -o ControlPath="$control/%C" -o ControlPersist=60
)
read -ra control_planes <<<"$CONTROL_PLANE_HOSTS"
read -ra workers <<<"$WORKER_HOSTS"
leader=${control_planes[0]}
kubectl="kubectl --kubeconfig /etc/kubernetes/admin.conf" # its server is the load balancer
ignore=--ignore-preflight-errors=SystemVerification # the lab's hosts have control groups v1

finish() {
	for host in "${control_planes[@]}" "${workers[@]}"; do
		ssh "${options[@]}" -O exit "$SSH_USER@$host" 2>/dev/null || true
	done
	rm -rf "$control"
}
trap finish EXIT

# stage NAME [HOST] prints which stage begins.
stage() { printf 'stage %s %s\n' "$1" "${2:-$leader}"; }

# on HOST COMMAND runs a command line on a host.
# shellcheck disable=SC2029 # the command expands here
on() { ssh "${options[@]}" "$SSH_USER@$1" "$2"; }

# copy HOST ROLE copies the files that hosts of the role need.
copy() {
	local files=()
	while read -r _ name; do files+=("$RELEASE/$name"); done <"$RELEASE/SHA256SUMS-$2"
	on "$1" 'mkdir -p release'
	scp -q "${options[@]}" "${files[@]}" "$RELEASE/SHA256SUMS-$2" "$SSH_USER@$1:release/"
}

# import_images HOST ROLE imports the images into the container runtime.
import_images() { on "$1" "ctr -n k8s.io images import release/images-$2.tar >/dev/null"; }

# install_host HOST ROLE checks the files and makes the host ready for kubeadm.
install_host() {
	ssh "${options[@]}" "$SSH_USER@$1" bash -seu "$2" "$PAUSE" <<'END'
cd release
sha256sum --quiet -c "SHA256SUMS-$1"
install -m 0755 -t /usr/local/bin kubeadm kubelet
[ ! -f kubectl ] || install -m 0755 -t /usr/local/bin kubectl
install -m 0755 runc /usr/local/sbin/runc
tar -xzf containerd.tar.gz -C /usr/local
mkdir -p /opt/cni/bin /etc/containerd
tar -xzf cni-plugins.tar.gz -C /opt/cni/bin
tar -xzf cni-plugin-flannel.tar.gz -C /opt/cni/bin
mv /opt/cni/bin/flannel-* /opt/cni/bin/flannel
printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
modprobe -a overlay br_netfilter 2>/dev/null || true
printf '%s = 1\n' net.ipv4.ip_forward net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables \
	>/etc/sysctl.d/kubernetes.conf
sysctl -q -e -p /etc/sysctl.d/kubernetes.conf 2>/dev/null || true
swapoff -a
cat >/etc/containerd/config.toml <<TOML
version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "$2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = true
TOML
cat >/etc/systemd/system/containerd.service <<'UNIT'
[Unit]
Description=containerd container runtime
After=network.target local-fs.target dbus.service
[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999
[Install]
WantedBy=multi-user.target
UNIT
cat >/etc/systemd/system/kubelet.service <<'UNIT'
[Unit]
Description=kubelet: The Kubernetes Node Agent
Wants=network-online.target
After=network-online.target
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
Restart=always
StartLimitInterval=0
RestartSec=10
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl -q enable kubelet
systemctl -q enable --now containerd
END
}

# prepare HOST ROLE prepares a bare host for kubeadm.
prepare() {
	stage copy "$1"
	copy "$1" "$2"
	stage install "$1"
	install_host "$1" "$2"
	stage import "$1"
	import_images "$1" "$2"
}

kubeadm_config() {
	cat <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  criSocket: unix:///run/containerd/containerd.sock
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v$VERSION
controlPlaneEndpoint: $ENDPOINT
networking: {podSubnet: $POD_SUBNET, serviceSubnet: $SERVICE_SUBNET}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
conntrack: {maxPerCore: 0, min: 0}
END
}

# init creates the cluster and keeps the arguments that kubeadm prints for joins.
init() {
	kubeadm_config | on "$leader" 'cat >kubeadm.yaml'
	on "$leader" "kubeadm init --config kubeadm.yaml --upload-certs $ignore" >"$control/init.log"
	token=$(grep -om1 -- '--token [^ ]*' "$control/init.log")
	hash=$(grep -om1 -- '--discovery-token-ca-cert-hash [^ ]*' "$control/init.log")
	certificates=$(grep -om1 -- '--certificate-key [^ ]*' "$control/init.log")
}

prepare "$leader" control-plane
stage init
init
stage network
on "$leader" "$kubectl apply -f - >/dev/null" <"$RELEASE/flannel.yaml"
for host in "${control_planes[@]:1}"; do
	prepare "$host" control-plane
	stage join "$host"
	on "$host" "kubeadm join $ENDPOINT $token $hash --control-plane $certificates $ignore >/dev/null"
done
for host in "${workers[@]}"; do
	prepare "$host" worker
	stage join "$host"
	on "$host" "kubeadm join $ENDPOINT $token $hash $ignore >/dev/null"
done
stage ready
# A Node appears some time after kubeadm has ended.
nodes=()
for host in "${control_planes[@]}" "${workers[@]}"; do nodes+=("node/$(on "$host" hostname)"); done
on "$leader" "$kubectl wait --for=create ${nodes[*]} --timeout=5m >/dev/null &&
	$kubectl wait --for=condition=Ready ${nodes[*]} --timeout=5m >/dev/null &&
	$kubectl -n kube-system wait --for=condition=Available deployment/coredns --timeout=5m >/dev/null"
