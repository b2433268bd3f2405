# stages init, pki, join-prepare, join-etcd, join-finish: the host becomes part of the control plane. Each resumes what
# an earlier run has left.
#
# Variables, set by script.go:
#
#	IGNORE      preflight errors to ignore, separated by commas
#	INIT_FLAGS  one flag of kubeadm init; "" for none

# ignored prints the preflight errors to ignore: those of the manifest, and, if an installation of this cluster was
# interrupted here, those that complain only about its remains.
ignored() {
	list=$IGNORE
	if [ -d /etc/kubernetes/pki ] || [ -f /etc/kubernetes/kubelet.conf ] ||
		[ -f /etc/kubernetes/bootstrap-kubelet.conf ]; then
		list=$list,DirAvailable--etc-kubernetes-manifests,DirAvailable--var-lib-etcd
		list=$list,FileAvailable--etc-kubernetes-kubelet.conf,FileAvailable--etc-kubernetes-bootstrap-kubelet.conf
		list=$list,FileAvailable--etc-kubernetes-pki-ca.crt
		for c in kube-apiserver kube-controller-manager kube-scheduler etcd; do
			list=$list,FileAvailable--etc-kubernetes-manifests-$c.yaml
		done
		for p in 6443 10250 10257 10259 2379 2380; do list=$list,Port-$p; done
	fi
	# If the directory is a mount point, what a recovery has moved aside is still in it.
	for old in /var/lib/etcd/kubeone-old-*; do [ ! -e "$old" ] || list=$list,DirAvailable--var-lib-etcd; done
	printf '%s\n' "${list#,}"
}

# guard_etcd makes etcd's manifest mount the write-ahead log through a link, so that etcd cannot start without its data.
# Without data the link dangles, and neither the kubelet nor containerd creates a directory for it. Otherwise the member
# that began the cluster would begin another, empty one, which its API server would serve. Any other member would vote
# again without remembering what it had agreed to. Call it before etcd's manifest is written, and before a host is
# complete.
guard_etcd() { etcd_needs /var/lib/etcd/member/wal; }

# begin_etcd lets etcd start here for the first time, until guard_etcd is called.
begin_etcd() { etcd_needs /etc/kubeone/patches; }

# etcd_needs DIRECTORY lets etcd start only while the directory exists.
etcd_needs() {
	put /etc/kubeone/patches/etcd+strategic.yaml 0644 file_etcd_patch
	[ -L /etc/kubeone/etcd-log ] || rmdir /etc/kubeone/etcd-log 2>/dev/null || true
	link "$1" /etc/kubeone/etcd-log
}

# Key pairs that kubeadm makes on a control-plane host, below /etc/kubernetes/pki: CAs and service-account keys, and the
# certificates that the CAs sign.
authorities="ca etcd/ca front-proxy-ca sa"
signed="apiserver apiserver-kubelet-client apiserver-etcd-client front-proxy-client"
signed="$signed etcd/server etcd/peer etcd/healthcheck-client"

# drop_halves removes files that a power failure, or an interrupted kubeadm, has left empty or without the other half of
# their pair: kubeadm would use them and fail every time. It keeps the authorities.
drop_halves() {
	for conf in /etc/kubernetes/*.conf; do [ -s "$conf" ] || rm -f "$conf"; done
	for name in $signed; do
		pair=/etc/kubernetes/pki/$name
		{ [ -s "$pair.crt" ] && [ -s "$pair.key" ]; } || rm -f "$pair.crt" "$pair.key"
	done
}

# half_authority succeeds if one half of an authority's pair exists without the other.
half_authority() {
	for name in $authorities; do
		key=/etc/kubernetes/pki/$name.key
		public=${key%.key}.crt
		[ "$name" != sa ] || public=${key%.key}.pub
		{ [ ! -e "$public" ] && [ ! -e "$key" ]; } || { [ -s "$public" ] && [ -s "$key" ]; } || return 0
	done
	return 1
}

# all_authorities dies if an authority is missing. kubeadm would make a new one, which the existing cluster does not
# trust.
all_authorities() {
	missing=
	for name in $authorities; do
		public=crt
		[ "$name" != sa ] || public=pub
		for half in "$public" key; do
			[ -s "/etc/kubernetes/pki/$name.$half" ] || missing="$missing $name.$half"
		done
	done
	[ -z "$missing" ] ||
		die "/etc/kubernetes/pki lacks what the cluster is signed with:$missing." \
			"Look for it in /var/lib/kubeone-old, or on another control-plane host, put it back, and recover again"
}

# drop_half_authorities moves aside what kubeadm has made for a cluster that has not begun, if it was interrupted while
# it made the authorities: certificates of the old ones would not fit the new ones. It moves the authorities last.
drop_half_authorities() {
	[ ! -d /var/lib/etcd/member ] && half_authority || return 0
	set -- "$CLIENT_CERT"
	for name in admin super-admin controller-manager scheduler kubelet bootstrap-kubelet; do
		set -- "$@" "/etc/kubernetes/$name.conf"
	done
	for name in $signed $authorities; do
		for half in crt pub key; do set -- "$@" "/etc/kubernetes/pki/$name.$half"; done
	done
	move_aside old "$@"
}

stage_init() {
	tolerated=$(ignored)
	copy_encryption
	drop_half_authorities
	drop_halves
	begin_etcd
	config=$(kubeadm_config file_init)
	# The authorities must be on disk before anything relies on them.
	kubeadm init phase certs all --config "$config"
	on_disk /etc/kubernetes/pki
	component_files
	# shellcheck disable=SC2086 # none or one flag
	kubeadm init --config "$config" --skip-token-print --ignore-preflight-errors "$tolerated" $INIT_FLAGS
	rm -f /etc/kubernetes/super-admin.conf
	no_auto_approval
	if [ -n "$EXEMPT_NAMESPACES" ]; then
		exempt_namespaces
		stage_system_addons
	fi
	component_leftovers
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
	mark yes
	rm -f "$UPGRADING" # of an earlier life of this host
}

# no_auto_approval deletes kubeadm's rule that approves the certificate of any Node for the holder of a join token.
# kubeone approves them: it makes the token, and knows for which Node.
no_auto_approval() {
	wait_for 60 "kubeadm's approval of any Node's certificate to be removed" \
		administer delete clusterrolebinding kubeadm:node-autoapprove-bootstrap --ignore-not-found
}

# administer ARGUMENT... runs kubectl as the cluster's administrator.
administer() { "$BIN/kubectl" --kubeconfig /etc/kubernetes/admin.conf --request-timeout 5s "$@"; }

stage_pki() {
	place_pki
	copy_encryption
}

place_pki() {
	archive=$(secret pki.tar)
	if [ -s /etc/kubernetes/pki/ca.crt ]; then
		# During a rotation of the CA, this host and the archive have at least one CA in common.
		ours=$(one_a_line </etc/kubernetes/pki/ca.crt)
		tar -xOf "$archive" ca.crt | one_a_line | grep -q -F -x -e "$ours" ||
			die "/etc/kubernetes/pki/ca.crt is another cluster's CA"
	fi
	new=/etc/kubernetes/pki.kubeone
	(
		umask 077
		rm -rf "$new"
		mkdir -p "$new" /etc/kubernetes/pki/etcd
		tar -xf "$archive" -C "$new" --no-same-owner
	)
	on_disk "$new"
	for file in "$new"/*.* "$new"/etcd/*.*; do mv -f "$file" "/etc/kubernetes/pki/${file#"$new"/}"; done
	rm -rf "$NEXT" "$ROTATION" # of an earlier life: another host signs with the next keys now
	[ ! -s "$new/rotation" ] || put "$ROTATION" 0644 copied_note
	rm -rf "$new"
	chmod 0755 /etc/kubernetes /etc/kubernetes/pki /etc/kubernetes/pki/etcd
	chmod 0600 /etc/kubernetes/pki/*.key /etc/kubernetes/pki/etcd/*.key
	chmod 0644 /etc/kubernetes/pki/*.crt /etc/kubernetes/pki/etcd/*.crt
	one_signs
}

# one_a_line reads PEM certificates and prints each as one line.
one_a_line() { tr -d '\n' | sed 's/-----END CERTIFICATE-----/&\n/g'; }

copied_note() { cat "$new/rotation"; }

# kubelet_asks URL makes the kubelet connect to the API server at URL.
kubelet_asks() { sed -i "s|^\\( *server: \\).*|\\1$1|" /etc/kubernetes/kubelet.conf; }

stage_join_prepare() {
	drop_halves
	config=$(kubeadm_config file_join)
	kubeadm join phase preflight --config "$config" --ignore-preflight-errors "$(ignored)"
	# kubeadm would always refuse files that an earlier attempt made for another endpoint or other names.
	rm -f /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key /etc/kubernetes/admin.conf
	kubeadm join phase control-plane-prepare certs --config "$config"
	kubeadm join phase control-plane-prepare kubeconfig --config "$config"
	publish_configuration
	# A kubelet that finds no such directory retries only after up to 20 s.
	mkdir -p /etc/kubernetes/manifests
	chmod 0700 /etc/kubernetes/manifests
	if [ ! -f /etc/kubernetes/kubelet.conf ]; then
		# This host has the CA, so its kubelet needs no bootstrap. Until this host's own API server runs, the kubelet uses
		# the cluster's endpoint: it registers, gets its network and becomes ready while etcd still grows.
		init=$(kubeadm_config file_init)
		kubeadm init phase kubeconfig kubelet --config "$init"
		kubelet_asks "$ENDPOINT"
		config=$(kubeadm_config file_join)
	elif ! dials /etc/kubernetes/kubelet.conf "$LOCAL_ENDPOINT" && ! dials /etc/kubernetes/kubelet.conf "$ENDPOINT"; then
		kubelet_asks "$ENDPOINT" # an earlier attempt used another endpoint
	fi
	# The kubelet may have refused the settings of an earlier attempt, and this host may have no Node.
	if [ ! -s /var/lib/kubelet/config.yaml ]; then
		kubeadm join phase kubelet-start --config "$config"
	else
		rewrite_settings
	fi
	rm -f /etc/kubernetes/bootstrap-kubelet.conf
	await_kubelet "the kubelet to be healthy" kubelet_healthy # before this host becomes a member of etcd
}

# publish_configuration updates ConfigMap kubeadm-config from the manifest, because the rest of the join reads it.
# kubeadm itself would ask this host's own API server, which does not run yet. Other hosts may do the same at this
# moment: the API server merges concurrent patches, but would refuse one of two replacements.
publish_configuration() {
	config=$(plain_config cluster_configuration)
	administer -n kube-system create configmap kubeadm-config --from-file "ClusterConfiguration=$config" \
		--dry-run=client -o json >"$config.json"
	administer -n kube-system patch configmap kubeadm-config --type merge --patch-file "$config.json" >/dev/null
}

# cluster_configuration prints the ClusterConfiguration: the second document of kubeadm's configuration.
cluster_configuration() { file_cluster_now | sed '1,/^---$/d; /^---$/,$d'; }

stage_join_etcd() {
	if etcd_votes >/dev/null 2>&1; then
		guard_etcd
		say "this host's etcd member votes already"
		return 0
	fi
	begin_etcd
	config=$(kubeadm_config file_join)
	# The phase ends when the member serves clients. A new member of etcd 3.6 does so only 7 s after it votes: it misses
	# that its own announcement has arrived in a snapshot, and repeats it. There is no need to wait for that.
	"$BIN/kubeadm" join phase etcd-join --config "$config" &
	joining=$!
	votes=no
	until [ "$votes" = yes ] || ! kill -0 "$joining" 2>/dev/null; do
		if etcd_votes >/dev/null 2>&1; then votes=yes; else sleep "$POLL"; fi
	done
	[ "$votes" = no ] || kill "$joining" 2>/dev/null || true
	wait "$joining" || [ "$votes" = yes ] ||
		die "this host's etcd member has not joined$(pods=etcd && last_words)." \
			"If its data is of a member that was removed, reset this host and apply again"
	guard_etcd
}

stage_join_finish() {
	component_files
	never_blind local_ctl
	config=$(kubeadm_config file_join)
	kubeadm join phase control-plane-prepare control-plane --config "$config"
	await_api_server 240
	wait_for 120 "the kubelet's client certificate" test -s "$CLIENT_CERT"
	# From here on the kubelet uses this host's own API server. The phase restarts it.
	kubelet_asks "$LOCAL_ENDPOINT"
	init=$(kubeadm_config file_init)
	kubeadm init phase kubelet-finalize enable-client-cert-rotation --config "$init"
	config=$(kubeadm_config file_join)
	kubeadm join phase control-plane-join mark-control-plane --config "$config"
	wait_for 120 "the kubelet's /healthz" kubelet_healthy
	wait_for_pods "kube-controller-manager kube-scheduler" 240 "this host's controller manager and scheduler" \
		controllers_healthy
	component_leftovers
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
	mark yes
	rm -f "$UPGRADING" # of an earlier life of this host
}
