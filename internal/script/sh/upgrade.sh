# stages fetch, check, upgrade-control-plane, upgrade-worker: another version of Kubernetes beside the one in use, and then
# in its place. The kubelet goes last: its version says that all else is done.

# stage fetch: nothing that runs is touched.
stage_fetch() {
	room_for_images
	SWITCH=no
	install_binaries
	stage_images
	pin_images
}

# room_for_images dies when what was uploaded, unpacked, would fill the disk. Images take about twice their size while
# they are imported.
room_for_images() {
	uploaded=$(du -sk "$ARTIFACTS" 2>/dev/null | cut -f1)
	free=$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')
	[ "$free" -gt $((${uploaded:-0} * 2 + 512 * 1024)) ] ||
		die "$((free / 1024)) MiB are free below /var/lib, $((${uploaded:-0} * 2 / 1024 + 512)) MiB are needed for the images: free some space and apply again"
}

# stage check: all that the host's upgrade needs is still there. Whoever removes images does so any time.
stage_check() {
	printf '%s\n' "$BINARIES" | while read -r name version sum _; do
		[ -z "$name" ] || [ "$(cat "/opt/kubeone/$name/$version/.sha256" 2>/dev/null)" = "$sum" ] ||
			die "$name $version is not on this host any more: apply again, it is fetched again"
	done || exit 1
	images_present
	encryption_stays
	[ "$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')" -gt 262144 ] || die "less than 256 MiB are free below /var/lib: free some space and apply again"
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

# static_pods_ours dies where somebody has changed a static pod since a stage wrote it: the upgrade would lose what they have added.
# Of what an interrupted upgrade has written so far, nothing is claimed.
static_pods_ours() {
	[ "$DISCARD_EDITS" != yes ] && [ -f "$FILES" ] || return 0
	theirs=$(grep ' /etc/kubernetes/manifests/' "$FILES" | sha256sum -c - 2>/dev/null | sed -n 's/: FAILED.*//p')
	[ -z "$theirs" ] || die "somebody has changed $theirs: undo that, or keep it elsewhere and upgrade with --discard-edits"
}

# encryption_stays refuses to make an API server anew without what it encrypts with: nobody could read that any more.
encryption_stays() {
	[ "$ROLE" = control-plane ] || return 0
	[ "${ENCRYPTING:-no}" = no ] || return 0
	# A configuration of ours without its patch is what was left of going back to none: what etcd has decides.
	! grep -s -e '--encryption-provider-config' /etc/kubernetes/manifests/kube-apiserver.yaml |
		grep -qv -e "--encryption-provider-config=$ENCRYPTION_DIR/" || {
		file_cluster
		cat /etc/kubeone/patches/kube-apiserver* 2>/dev/null || true
	} | grep -q encryption-provider-config ||
		die "the API server encrypts what it stores (--encryption-provider-config), the manifest does not, and nobody could read it: put that flag into controlPlaneComponents.apiServer.flags"
	if etcd_votes >/dev/null 2>&1; then
		never_blind local_ctl
	elif [ -z "$(patched)" ] && grep -qs -e "--encryption-provider-config=$ENCRYPTION_DIR/" /etc/kubernetes/manifests/kube-apiserver.yaml; then
		die "this host's etcd member does not answer, so that nobody knows by which keys Secrets are stored"
	else
		configured >/dev/null
	fi
}

# begun succeeds when an upgrade of this host to the wanted version has begun and has not ended. Whatever a worker's was to, this one
# writes all that it has written.
begun() {
	if [ "$ROLE" = worker ]; then [ -s "$UPGRADING" ]; else [ "$(cat "$UPGRADING" 2>/dev/null)" = "$KUBELET" ]; fi
}

upgrade_text() { printf '%s\n' "$KUBELET"; }

# begin_upgrade notes that the upgrade has begun. Of what it writes nothing is claimed until its end.
begin_upgrade() {
	put "$UPGRADING" 0644 upgrade_text
	# shellcheck disable=SC2046 # lists
	forget_files $(for name in containerd kernel kubelet components; do files_of "$name"; done)
}

# api_version succeeds when this host's API server says that it has the wanted version, to who may know.
api_version() {
	listens 6443 && asked /etc/kubernetes/admin.conf "$LOCAL_ENDPOINT" | grep -q "\"gitVersion\": *\"v${KUBERNETES}\""
}

# switch_binary NAME puts the new version of a program in place.
switch_binary() {
	printf '%s\n' "$BINARIES" | while read -r name version _; do
		[ "$name" != "$1" ] || link_binary "$name" "/opt/kubeone/$name/$version"
	done
}

# others_vote succeeds when the other voters are a quorum, or there are none that could be: etcd is then away for a moment.
others_vote() {
	etcd=$(etcd_container)
	[ -n "$etcd" ] || return 0
	pki=/etc/kubernetes/pki/etcd
	ask="--endpoints https://127.0.0.1:2379 --command-timeout 5s --cacert $pki/ca.crt --cert $pki/server.crt --key $pki/server.key -w json"
	# shellcheck disable=SC2086 # a list
	learners=$(in_etcd etcdctl $ask member list 2>/dev/null | grep -o '"isLearner":true' | wc -l)
	# shellcheck disable=SC2086 # a list
	health=$(in_etcd etcdctl $ask endpoint health --cluster 2>/dev/null || true)
	voters=$(($(printf '%s' "$health" | grep -o '"endpoint":' | wc -l) - learners))
	well=$(printf '%s' "$health" | grep -o '"health":true' | wc -l)
	[ "$well" -gt 0 ] || return 1
	if [ "$voters" -le 2 ]; then [ "$well" -eq "$voters" ]; else [ $((well - 1)) -ge $((voters / 2 + 1)) ]; fi
}

# give_up_leases POD... lets others lead at once, where those that have ended here did: until then nobody takes pods that end out of
# their Services. Where the API does not answer, the leases run out by themselves.
give_up_leases() {
	for name in "$@"; do
		holder=$(administer -n kube-system get lease "$name" -o 'jsonpath={.spec.holderIdentity}' 2>/dev/null || true)
		case $holder in
		"$(cat /proc/sys/kernel/hostname)"_*)
			administer -n kube-system patch lease "$name" --type json -p "[{\"op\":\"test\",\"path\":\"/spec/holderIdentity\",\"value\":\"$holder\"},
				{\"op\":\"replace\",\"path\":\"/spec/holderIdentity\",\"value\":\"\"}]" >/dev/null 2>&1 || say "the lease of $name runs out by itself"
			;;
		esac
	done
}

# end_static_pods ends what the kubelet, which does not run, would keep alive: API server and controllers, which get time for
# what they are doing, and then etcd, which nobody asks any more.
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

# kubeadm's own upgrade waits for each component through the API that it restarts, and then a new kubelet, which gives static
# pods other identities, starts all of them once more, when everybody believes that the host is done. Here the phases write,
# and old components end together with the old kubelet: each starts once, and what answers afterwards is new.
stage_upgrade_control_plane() {
	stage_check
	begin_upgrade
	switch_binary kubeadm
	if ! kubelet_healthy >/dev/null 2>&1; then # without it nothing else starts, and perhaps no API server answers
		settings_anew
		start_kubelet
		wait_for 240 "the API to let its administrator in" administrator_let_in
	fi
	config=$(plain_config file_cluster)
	kubeadm init phase upload-config all --config "$config"
	kubeadm certs renew all --config "$config" # each keeps its names
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
	wait_for_pods "kube-controller-manager kube-scheduler" 120 "this host's controller manager and scheduler" controllers_healthy
	end_upgrade
}

administrator_let_in() { administer get clusterrolebindings -o name; }

# stage system-addons: kube-proxy and cluster DNS follow the control plane. kubeadm's own upgrade leaves them alone when the
# API does not show yet that the API server of this host is new.
stage_system_addons() {
	# An API server that has just started refuses everybody until it has read its rules, and kubeadm would take them for missing.
	wait_for 60 "the API to let its administrator in" administrator_let_in
	config=$(plain_config file_cluster)
	# Whoever goes on with kubeadm alone finds the same images there.
	kubeadm init phase upload-config kubeadm --config "$config"
	# kubeadm keeps the Corefile that is there, and fails where there is none.
	if corefile=$(administer -n kube-system get configmap coredns -o 'jsonpath={.data.Corefile}' 2>/dev/null) && [ -z "$corefile" ]; then
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

# forget_state removes what a newer kubelet has written and an older one may refuse to read: which CPUs and memory the pods
# had, and what they were allocated. The node is drained. The kubelet, which would write it again, is stopped first; a turn
# that ends between the two still has the newer kubelet in place, and comes here again.
forget_state() {
	systemctl stop kubelet.service
	for name in cpu_manager_state memory_manager_state allocated_pods_state actuated_pods_state; do
		rm -f "/var/lib/kubelet/$name"
	done
}

# upgrade_runtime puts all in place that the kubelet needs.
upgrade_runtime() {
	install_packages
	kernel_settings
	configure_firewalls
	for name in runc cni-plugins $PLUGIN_BINARIES crictl containerd kubectl; do switch_binary "$name"; done
	configure_runtime
	wait_for 60 "containerd" "$BIN/ctr" version
	configure_snapshots
}

# write_kubelet writes the kubelet's configuration.
write_kubelet() {
	configure_kubelet
	kubeadm upgrade node phase kubelet-config --patches /etc/kubeone/patches
	drop_old_flags
}

# settings_anew does so on a control-plane host whose kubelet does not run, perhaps because of what it was given. It needs no API, which
# may be away with that kubelet, and no Node of this host. kubeadm starts the kubelet.
settings_anew() {
	configure_kubelet
	config=$(plain_config file_cluster_now)
	systemctl reset-failed kubelet.service 2>/dev/null || true
	kubeadm init phase kubelet-start --config "$config"
	drop_old_flags
}

# drop_old_flags: kubeadm gave kubelets before 1.35 a flag that those since do not know.
drop_old_flags() {
	flags=/var/lib/kubelet/kubeadm-flags.env
	[ ! -f "$flags" ] || sed -i 's/--pod-infra-container-image=[^ "]* *//' "$flags"
}

# switch_kubelet puts the kubelet's program in place. What this host has now is recorded before: until the switch, the
# kubelet's version says that the upgrade is not over.
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
		die "correct what the kubelet says, in the manifest or on the host, and apply again, which continues this host's upgrade: $(journalctl -u kubelet -n 5 --no-pager -o cat)"
}

# end_upgrade notes that this host has all that is wanted, and so its upgrade has ended.
end_upgrade() {
	unpin_others
	component_leftovers
	# shellcheck disable=SC2086 # lists
	record $HOST_DIGESTS $NODE_DIGESTS
	mark yes
	rm -f "$UPGRADING"
	rm -rf "$BEFORE"
}
