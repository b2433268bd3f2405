# stages fetch, check, upgrade-control-plane, upgrade-worker, system-addons: another version of Kubernetes, first beside
# the one in use, then in its place. The kubelet is last: its version says that the upgrade is complete.
#
# Variables, set by CheckParams and UpgradeWorkerParams in internal/plan/step/upgrade.go except where noted:
#
#	DISCARD_EDITS  yes: overwrite static pods that were edited
#	DOWN           not "": the new kubelet is older than the present one
#	SKIP_PROXY     yes|no: the cluster has no kube-proxy; set by script.go

# stage fetch: downloads or unpacks the new version, and changes nothing that runs.
stage_fetch() {
	room_for_images
	SWITCH=no
	install_binaries
	stage_images
	pin_images
}

# room_for_images dies if importing the uploaded files would fill the disk. Images need about twice their size
# meanwhile.
room_for_images() {
	uploaded=$(du -sk "$ARTIFACTS" 2>/dev/null | cut -f1)
	free=$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')
	[ "$free" -gt $((${uploaded:-0} * 2 + 512 * 1024)) ] ||
		die "$((free / 1024)) MiB are free below /var/lib," \
			"$((${uploaded:-0} * 2 / 1024 + 512)) MiB are needed for the images: free some space and apply again"
}

# stage check: dies unless everything that the upgrade needs is present. The kubelet, or an operator, may have removed
# images.
stage_check() {
	printf '%s\n' "$BINARIES" | while read -r name version sum _; do
		[ -z "$name" ] || [ "$(cat "/opt/kubeone/$name/$version/.sha256" 2>/dev/null)" = "$sum" ] ||
			die "$name $version is not on this host any more: apply again to fetch it again"
	done || exit 1
	images_present
	encryption_stays
	[ "$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')" -gt 262144 ] ||
		die "less than 256 MiB are free below /var/lib: free some space and apply again"
	[ "$ROLE" != control-plane ] || static_pods_ours
	if begun; then
		say "an earlier upgrade of this host was interrupted: it continues, whatever does not run"
		return 0
	fi
	if [ "$ROLE" = control-plane ]; then
		wait_for 60 "this host's API server" readyz
		wait_for 60 "this host's etcd member" etcd_votes
	fi
	wait_for 60 "the kubelet's /healthz" kubelet_healthy
}

# static_pods_ours dies if a static pod was edited since a stage wrote it: the upgrade would overwrite the edit. It
# skips manifests that an interrupted upgrade has written, which have no record yet.
static_pods_ours() {
	[ "$DISCARD_EDITS" != yes ] && [ -f "$FILES" ] || return 0
	theirs=$(grep ' /etc/kubernetes/manifests/' "$FILES" | sha256sum -c - 2>/dev/null | sed -n 's/: FAILED.*//p')
	[ -z "$theirs" ] ||
		die "$theirs was edited since kubeone wrote it:" \
			"undo the edit, or keep it elsewhere and upgrade with --discard-edits"
}

# encryption_stays dies if the new API server would lack the encryption configuration, and so could not read Secrets.
encryption_stays() {
	[ "$ROLE" = control-plane ] || return 0
	[ "${ENCRYPTING:-no}" = no ] || return 0
	# kubeone's own configuration without its patch remains from a return to no encryption: then etcd's content decides.
	! grep -s -e '--encryption-provider-config' /etc/kubernetes/manifests/kube-apiserver.yaml |
		grep -qv -e "--encryption-provider-config=$ENCRYPTION_DIR/" || {
		file_cluster
		cat /etc/kubeone/patches/kube-apiserver* 2>/dev/null || true
	} | grep -q encryption-provider-config ||
		die "the API server encrypts what it stores (--encryption-provider-config), the manifest does not," \
			"and a new API server could not read it:" \
			"put that flag into controlPlaneComponents.apiServer.flags"
	if etcd_votes >/dev/null 2>&1; then
		never_blind local_ctl
	elif [ -z "$(patched)" ] && grep -qs -e "--encryption-provider-config=$ENCRYPTION_DIR/" \
		/etc/kubernetes/manifests/kube-apiserver.yaml; then
		die "this host's etcd member does not answer, so it is unknown which keys encrypt the stored Secrets"
	else
		configured >/dev/null
	fi
}

# begun succeeds if an upgrade of this host to the desired version has begun and not ended. On a worker any upgrade
# counts: this one rewrites all that another may have written.
begun() {
	if [ "$ROLE" = worker ]; then [ -s "$UPGRADING" ]; else [ "$(cat "$UPGRADING" 2>/dev/null)" = "$KUBELET" ]; fi
}

upgrade_text() { printf '%s\n' "$KUBELET"; }

# begin_upgrade notes that the upgrade has begun, and drops the records of the files that it writes.
begin_upgrade() {
	put "$UPGRADING" 0644 upgrade_text
	# shellcheck disable=SC2046 # lists
	forget_files $(for name in containerd kernel kubelet components; do files_of "$name"; done)
}

# api_version succeeds if this host's API server has the desired version. It asks as an administrator, since a hardened
# API server does not tell others.
api_version() {
	listens 6443 && asked /etc/kubernetes/admin.conf "$LOCAL_ENDPOINT" | grep -q "\"gitVersion\": *\"v${KUBERNETES}\""
}

# switch_binary NAME makes the links of a program point to the new version.
switch_binary() {
	printf '%s\n' "$BINARIES" | while read -r name version _; do
		[ "$name" != "$1" ] || link_binary "$name" "/opt/kubeone/$name/$version"
	done
}

# others_vote succeeds if the other voters are a quorum. With one or two voters they cannot be: then all must be
# healthy.
others_vote() {
	etcd=$(etcd_container)
	[ -n "$etcd" ] || return 0
	pki=/etc/kubernetes/pki/etcd
	ask="--endpoints https://127.0.0.1:2379 --command-timeout 5s --cacert $pki/ca.crt"
	ask="$ask --cert $pki/server.crt --key $pki/server.key -w json"
	# shellcheck disable=SC2086 # a list
	learners=$(in_etcd etcdctl $ask member list 2>/dev/null | grep -o '"isLearner":true' | wc -l)
	# shellcheck disable=SC2086 # a list
	health=$(in_etcd etcdctl $ask endpoint health --cluster 2>/dev/null || true)
	voters=$(($(printf '%s' "$health" | grep -o '"endpoint":' | wc -l) - learners))
	well=$(printf '%s' "$health" | grep -o '"health":true' | wc -l)
	[ "$well" -gt 0 ] || return 1
	if [ "$voters" -le 2 ]; then [ "$well" -eq "$voters" ]; else [ $((well - 1)) -ge $((voters / 2 + 1)) ]; fi
}

# give_up_leases POD... releases the Leases of this host's ended controllers, so that others lead at once. Until then,
# no controller removes ending pods from their Services. If the API does not answer, the Leases expire.
give_up_leases() {
	for name in "$@"; do
		holder=$(administer -n kube-system get lease "$name" -o 'jsonpath={.spec.holderIdentity}' 2>/dev/null || true)
		case $holder in
		"$(cat /proc/sys/kernel/hostname)"_*)
			lease_patch="[{\"op\":\"test\",\"path\":\"/spec/holderIdentity\",\"value\":\"$holder\"},
				{\"op\":\"replace\",\"path\":\"/spec/holderIdentity\",\"value\":\"\"}]"
			administer -n kube-system patch lease "$name" --type json -p "$lease_patch" >/dev/null 2>&1 ||
				say "the lease of $name runs out by itself"
			;;
		esac
	done
}

# end_static_pods ends the static pods while the kubelet is stopped: API server and controllers first, with time for
# what they are doing, and then etcd.
end_static_pods() {
	end_api
	end_pod etcd
	await_end 20 etcd
}

# end_api ends the API server and the controllers, which use etcd.
end_api() {
	for name in kube-apiserver kube-controller-manager kube-scheduler; do end_pod "$name"; done
	for name in kube-apiserver kube-controller-manager kube-scheduler; do await_end 10 "$name"; done
}

# stage_upgrade_control_plane uses phases instead of "kubeadm upgrade". That waits for each component through the API
# that it restarts. Then the new kubelet gives static pods other identities, and restarts all of them after kubeadm has
# ended. Here the old components end together with the old kubelet, so each starts once, and whatever answers afterwards
# is new.
stage_upgrade_control_plane() {
	stage_check
	begin_upgrade
	switch_binary kubeadm
	if ! kubelet_healthy >/dev/null 2>&1; then # without the kubelet, nothing else starts
		rewrite_settings
		start_kubelet
		wait_for 240 "the API to let its administrator in" administrator_let_in
	fi
	config=$(plain_config file_cluster)
	kubeadm init phase upload-config all --config "$config"
	kubeadm certs renew all --config "$config" # keeps the names
	upgrade_runtime
	write_kubelet
	wait_for 120 "etcd to have a quorum without this host's member" others_vote
	guard_etcd
	(exempt_namespaces) || say "the next upgrade or reconfiguration exempts them"
	component_files
	kubeadm init phase etcd local --config "$config"
	kubeadm init phase control-plane all --config "$config"
	kubelet_asks "$LOCAL_ENDPOINT"
	systemctl stop kubelet.service
	end_static_pods
	give_up_leases kube-controller-manager kube-scheduler
	switch_kubelet
	start_kubelet
	wait_for_pods etcd 300 "this host's etcd member" etcd_votes
	wait_for_pods kube-apiserver 300 "this host's API server in version $KUBERNETES" api_version
	await_api_server 120
	wait_for_pods "kube-controller-manager kube-scheduler" 120 "this host's controller manager and scheduler" \
		controllers_healthy
	end_upgrade
}

administrator_let_in() { administer get clusterrolebindings -o name; }

# stage system-addons: upgrades kube-proxy and cluster DNS after the control plane. "kubeadm upgrade" skips them if the
# API does not show yet that this host's API server is new.
stage_system_addons() {
	# A new API server refuses all users until it has read its RBAC rules; kubeadm would take the addons for missing.
	wait_for 60 "the API to let its administrator in" administrator_let_in
	config=$(plain_config file_cluster)
	# For an operator who uses kubeadm later: it finds the same images there.
	kubeadm init phase upload-config kubeadm --config "$config"
	# kubeadm keeps an existing Corefile, but fails if the ConfigMap has none.
	if corefile=$(administer -n kube-system get configmap coredns -o 'jsonpath={.data.Corefile}' 2>/dev/null) &&
		[ -z "$corefile" ]; then
		administer -n kube-system delete configmap coredns
	fi
	if [ "$SKIP_PROXY" = yes ]; then
		kubeadm init phase addon coredns --config "$config"
	else
		kubeadm init phase addon all --config "$config"
	fi
}

stage_upgrade_worker() {
	stage_check
	begin_upgrade
	switch_binary kubeadm
	upgrade_runtime
	write_kubelet
	[ -z "$DOWN" ] || forget_state
	switch_kubelet
	start_kubelet
	end_upgrade
}

# forget_state removes state files that an older kubelet may refuse to read: CPUs, memory and resources of pods. The
# Node is drained. The kubelet stops first, since it would write them again. If the run is interrupted after this, the
# newer kubelet is still in place, and the next run repeats it.
forget_state() {
	systemctl stop kubelet.service
	for name in cpu_manager_state memory_manager_state allocated_pods_state actuated_pods_state; do
		rm -f "/var/lib/kubelet/$name"
	done
}

# upgrade_runtime upgrades everything that the kubelet needs.
upgrade_runtime() {
	install_packages
	kernel_settings
	configure_firewalls
	for name in runc cni-plugins $PLUGIN_BINARIES crictl containerd kubectl; do switch_binary "$name"; done
	configure_runtime
	wait_for 60 "containerd" "$BIN/ctr" version
	configure_snapshots
	configure_host_addons
}

# write_kubelet writes the kubelet's configuration.
write_kubelet() {
	configure_kubelet
	kubeadm upgrade node phase kubelet-config --patches /etc/kubeone/patches
	drop_old_flags
}

# rewrite_settings writes the kubelet's configuration on a control-plane host whose kubelet does not run, perhaps
# because of its settings. It needs neither the API nor this host's Node. kubeadm starts the kubelet.
rewrite_settings() {
	configure_kubelet
	config=$(plain_config file_cluster_now)
	systemctl reset-failed kubelet.service 2>/dev/null || true
	kubeadm init phase kubelet-start --config "$config"
	drop_old_flags
}

# drop_old_flags removes a flag that kubeadm gave kubelets before 1.35, and that later ones refuse.
drop_old_flags() {
	flags=/var/lib/kubelet/kubeadm-flags.env
	[ ! -f "$flags" ] || sed -i 's/--pod-infra-container-image=[^ "]* *//' "$flags"
}

# switch_kubelet replaces the kubelet's program. It records the new digests first: until the program changes, the
# kubelet's version says that the upgrade is not complete.
switch_kubelet() {
	# shellcheck disable=SC2086 # lists
	case $(readlink "$BIN/kubelet") in
	*/"$KUBELET"/kubelet) ;;
	*) record $HOST_DIGESTS $NODE_DIGESTS ;;
	esac
	switch_binary kubelet
}

start_kubelet() {
	systemctl reset-failed kubelet.service 2>/dev/null || true
	systemctl restart kubelet.service || die "kubelet does not start: $(journalctl -u kubelet -n 5 --no-pager -o cat)"
	(wait_for 120 "the kubelet's /healthz" kubelet_healthy) ||
		die "correct what the kubelet says, in the manifest or on the host, and apply again," \
			"which continues this host's upgrade: $(journalctl -u kubelet -n 5 --no-pager -o cat)"
}

# end_upgrade records that this host matches the manifest, and removes the upgrade's files.
end_upgrade() {
	unpin_others
	component_leftovers
	# shellcheck disable=SC2086 # lists
	record $HOST_DIGESTS $NODE_DIGESTS
	mark yes
	rm -f "$UPGRADING"
	rm -rf "$BEFORE"
}
