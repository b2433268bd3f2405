# stage reset: makes the host bare and usable again. What the operator owns stays: drop-ins in /etc/containerd/conf.d,
# /etc/default/kubelet, packages and mount points. Files that were moved aside return. etcd's data, snapshots and the
# PKI are kept, dated, until stage purge: the operator may have reset the wrong host.
#
# Variables, set by script.go:
#
#	PLUGIN_INTERFACES  list of prefixes of the network plugin's interfaces
#	PLUGIN_TABLES      list of the network plugin's nftables tables
#	PLUGIN_PATHS       list of the network plugin's files and directories
#	CHAINS             extended regular expression of iptables chains

stage_reset() {
	remove_snapshot_timer
	for addon in etcd-defrag unattended-upgrades; do remove_host_addon "$addon"; done
	systemctl disable --now kubeone-cni.path kubelet.service 2>/dev/null || true
	systemctl disable --now kubeone-guard.service 2>/dev/null || true
	systemctl stop kubeone-cni.service 2>/dev/null || true
	stop_containers
	systemctl disable --now containerd.service 2>/dev/null || true
	kill_shims
	unmount_all
	remove_links
	remove_rules
	restore_firewalls
	remove_files
	systemctl daemon-reload
	systemctl reset-failed kubelet.service containerd.service kubeone-cni.service 2>/dev/null || true
}

# stop_containers kills and removes containerd's containers. With the first process of a container, the others end, too.
# kill_shims ends what is left, without containerd.
stop_containers() {
	[ -x "$BIN/ctr" ] || return 0
	systemctl start containerd.service 2>/dev/null || true
	"$BIN/ctr" --connect-timeout 10s -n k8s.io tasks ls 2>/dev/null | while read -r _ pid state _; do
		# A task that has ended keeps its process ID, which another process may have now.
		if [ "$state" = RUNNING ] && of_container "$pid"; then kill -KILL "$pid" 2>/dev/null || true; fi
	done
	for _ in 1 2 3; do
		ids=$("$BIN/ctr" -n k8s.io tasks ls -q 2>/dev/null) || ids=
		[ -n "$ids" ] || break
		# shellcheck disable=SC2086 # a list
		"$BIN/ctr" -n k8s.io tasks rm --force $ids >/dev/null 2>&1 || true
	done
	ids=$("$BIN/ctr" -n k8s.io containers ls -q 2>/dev/null) || ids=
	# shellcheck disable=SC2086 # a list
	[ -z "$ids" ] || "$BIN/ctr" -n k8s.io containers rm $ids >/dev/null 2>&1 || true
}

# of_container PID succeeds if the process belongs to a container.
of_container() { grep -qs -e kubepods -e cri-containerd "/proc/$1/cgroup"; }

# ours prints the process IDs of kubeone's programs, and of containers.
ours() {
	for exe in /proc/[0-9]*/exe; do
		pid=${exe#/proc/}
		pid=${pid%/exe}
		[ "$pid" != "$$" ] || continue
		case $(readlink "$exe" 2>/dev/null) in
		/opt/kubeone/*) printf '%s\n' "$pid" ;;
		*) of_container "$pid" && printf '%s\n' "$pid" ;;
		esac
	done || true
}

none_left() {
	left=$(ours)
	# shellcheck disable=SC2086 # a list
	[ -z "$left" ] || kill -KILL $left 2>/dev/null || true
	[ -z "$left" ]
}

kill_shims() { wait_for 30 "the last containers to end" none_left; }

unmount_all() {
	# deepest first
	while read -r _ where _; do printf '%s\n' "$where"; done </proc/mounts | sort -r | while read -r where; do
		case $where in
		/var/lib/kubelet/* | /run/containerd/* | /var/lib/containerd/* | /run/netns/cni-* | /var/run/netns/cni-*)
			umount -l "$(printf '%b' "$where")" 2>/dev/null || true
			;;
		esac
		for path in $PLUGIN_PATHS; do
			case $where in "$path" | "$path"/*) umount -l "$(printf '%b' "$where")" 2>/dev/null || true ;; esac
		done
	done
	rm -f /run/netns/cni-* 2>/dev/null || true
}

remove_links() {
	ip address delete 169.254.20.10/32 dev lo 2>/dev/null || true # of the DNS cache
	for path in /sys/class/net/*; do
		name=${path##*/}
		for prefix in $PLUGIN_INTERFACES; do
			case $name in "$prefix"*) ip link delete "$name" 2>/dev/null || true ;; esac
		done
		case $name in
		cni0 | kube-ipvs0 | nodelocaldns) ip link delete "$name" 2>/dev/null || true ;;
		veth*)
			[ "$(cat "$path/iflink" 2>/dev/null)" = "$(cat "$path/ifindex" 2>/dev/null)" ] ||
				ip link delete "$name" 2>/dev/null || true
			;;
		esac
	done
}

remove_rules() {
	if have nft; then
		nft list tables 2>/dev/null | while read -r _ family name; do
			case " kube-proxy $PLUGIN_TABLES " in
			*" $name "*) nft delete table "$family" "$name" 2>/dev/null || true ;;
			esac
		done
	fi
	for tool in iptables ip6tables; do
		have "$tool-save" || continue
		"$tool-save" 2>/dev/null | grep -q -E "$CHAINS" || continue
		"$tool-save" | grep -v -E "$CHAINS" | "$tool-restore"
	done
	if have ipvsadm; then ipvsadm --clear 2>/dev/null || true; fi
}

remove_files() {
	delete /var/lib/containerd /var/log/pods /var/log/kubernetes/audit # first, to make room
	rmdir /var/log/kubernetes 2>/dev/null || true
	set --
	[ ! -e /var/lib/etcd/member ] || set -- "$@" /var/lib/etcd
	[ ! -e /etc/kubernetes/pki/ca.key ] || set -- "$@" /etc/kubernetes/pki
	[ ! -e /etc/kubernetes/encryption ] || set -- "$@" /etc/kubernetes/encryption
	unfinished
	for taken in "$SNAPSHOTS"/*.db; do
		[ ! -f "$taken" ] || {
			set -- "$@" "$SNAPSHOTS"
			break
		}
	done
	move_aside reset "$@"
	for name in kubectl kubeadm crictl ctr; do
		case $(readlink "/usr/local/bin/$name" 2>/dev/null) in /opt/kubeone/*) rm -f "/usr/local/bin/$name" ;; esac
	done
	# shellcheck disable=SC2086 # a list
	delete $PLUGIN_PATHS
	delete /etc/kubernetes /var/lib/kubelet /var/lib/etcd /run/containerd /etc/cni /opt/cni /var/lib/cni \
		/var/log/containers /opt/kubeone /etc/containerd/config.toml /etc/containerd/certs.d /etc/crictl.yaml \
		/etc/systemd/system/kubelet.service /etc/systemd/system/containerd.service \
		/etc/systemd/system/containerd.service.d/kubeone-proxy.conf \
		/etc/systemd/system/kubeone-cni.path /etc/systemd/system/kubeone-cni.service \
		/etc/systemd/system/kubeone-guard.service \
		/etc/modules-load.d/kubeone.conf /etc/sysctl.d/99-zz-kubeone.conf "$ARTIFACTS" "$SECRETS" "$UPGRADING" "$HOOKS"
	# Directories that may contain files of others; containerd makes those below /opt itself.
	rm -f "$CREDENTIALS_DIR"/kubeone-registry-*.toml
	rmdir /etc/systemd/system/containerd.service.d /etc/containerd/conf.d /etc/containerd \
		/opt/containerd/bin /opt/containerd/lib /opt/containerd \
		/run/netns 2>/dev/null || true
	[ ! -f /etc/fstab ] || put /etc/fstab "$(stat -c %a /etc/fstab)" fstab_with_swap
	give_back
	# The marker last: until then, kubeone knows that the host is its own.
	rm -rf /etc/kubeone
}
