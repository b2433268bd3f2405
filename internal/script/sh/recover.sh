# stages fence, restore: a cluster whose quorum is lost, brought back from a copy of its data. Nothing is deleted: what a host
# held is in /var/lib/kubeone-old afterwards, dated. Each stage goes on from whatever an earlier run left.

fence_text() {
	printf 'cluster=%s\nrole=%s\nrun=%s\ncomplete=no\nfenced=%s\n' "$CLUSTER" "$ROLE" "${KUBEONE_RUN:-by-hand}" "${KUBEONE_RUN:-by-hand}"
	[ -z "$life" ] || printf 'epoch=%s\n' "$life"
	[ "$restoring" = no ] || printf 'restoring=yes\n'
}

# fence_mark yes|no says that a recovery took this host out of service, and whether the cluster is to begin anew on it: nothing
# but a recovery or a join starts it again.
fence_mark() {
	restoring=$1 life=
	if [ -f "$MARKER" ]; then
		owner=$(sed -n 's/^cluster=//p' "$MARKER")
		[ "$owner" = "$CLUSTER" ] || die "this host belongs to cluster ${owner}"
		life=$(sed -n 's/^epoch=//p' "$MARKER")
	fi
	put "$MARKER" 0644 fence_text
}

# serving prints the process IDs of this host's control plane; with an argument, of that program only.
serving() {
	for file in /proc/[0-9]*/comm; do
		name=$(cat "$file" 2>/dev/null) || continue
		case $name in
		etcd | kube-apiserver | kube-controller | kube-scheduler) ;;
		*) continue ;;
		esac
		[ "$name" = "${1:-$name}" ] || continue
		dir=${file%/comm}
		grep -qs -e kubepods -e cri-containerd "$dir/cgroup" && printf '%s\n' "${dir##*/}"
	done || true
}

etcd_ended() { [ -z "$(serving etcd)" ]; }

none_serving() {
	alive=$(serving)
	# shellcheck disable=SC2086 # a list
	[ -z "$alive" ] || kill -KILL $alive 2>/dev/null || true
	[ -z "$alive" ]
}

# stop_serving ends the kubelet, so that nothing starts them again, also not after a reboot, and then etcd, the API server
# and the controllers. etcd is asked to end first: it then writes down how far it knows its log to be agreed upon.
stop_serving() {
	systemctl disable --now kubelet.service 2>/dev/null || true
	! systemctl is-active --quiet kubelet.service || die "the kubelet does not stop"
	members=$(serving etcd)
	if [ -n "$members" ]; then
		# shellcheck disable=SC2086 # a list
		kill -TERM $members 2>/dev/null || true
		(wait_for 20 "etcd to end" etcd_ended) 2>/dev/null || say "etcd does not end by itself; killing it"
	fi
	wait_for 30 "etcd and the API server to end" none_serving
}

# move_aside PATH... keeps what is there in /var/lib/kubeone-old, dated. A mount point stays, and what is in it goes.
move_aside() {
	aside=/var/lib/kubeone-old/$(date -u +%Y%m%dT%H%M%SZ)
	while [ -e "$aside" ]; do aside=$aside.1; done
	for path in "$@"; do
		[ -e "$path" ] || continue
		(
			umask 077
			mkdir -p "$aside"
		)
		to=$aside/$(printf '%s' "${path#/}" | tr / -)
		mv "$path" "$to" 2>/dev/null || {
			mkdir -p "$to"
			mv "$path"/* "$to/"
		}
		say "$path is now $to"
	done
}

# guard_on has this host watched by guard.sh, if it has what that needs.
guard_on() {
	have nft && have curl || return 0
	CHANGED=no
	put /etc/kubeone/guard.sh 0700 file_guard
	put /etc/systemd/system/kubeone-guard.service 0644 file_guard_unit
	[ "$CHANGED" = no ] || systemctl daemon-reload
	systemctl -q enable kubeone-guard.service
	if [ "$CHANGED" = yes ]; then systemctl restart kubeone-guard.service; else systemctl start kubeone-guard.service; fi
}

stage_fence() {
	fence_mark no
	stop_serving
	move_aside /etc/kubernetes/manifests /var/lib/etcd /etc/kubernetes
}

# with_etcd PROGRAM ARGUMENT... runs a program of etcd's image.
with_etcd() {
	program=$1
	shift
	"/run/kubeone/etcd/usr/local/bin/$program" "$@"
}

# mount_etcd makes the programs of etcd's image runnable: of the one that runs here, else of the release's.
mount_etcd() {
	image=$(sed -n 's/^ *image: *//p' /etc/kubernetes/manifests/etcd.yaml 2>/dev/null || true)
	[ -n "$image" ] || image=$ETCD_IMAGE
	systemctl start containerd.service
	wait_for 60 "containerd" "$BIN/ctr" version
	unmount_etcd
	mkdir -p /run/kubeone/etcd
	quiet "$BIN/ctr" -n k8s.io images mount "$image" /run/kubeone/etcd || die "the image $image cannot be mounted"
}

unmount_etcd() {
	[ -d /run/kubeone/etcd ] || return 0
	"$BIN/ctr" -n k8s.io images unmount --rm /run/kubeone/etcd >/dev/null 2>&1 || true
	rmdir /run/kubeone/etcd 2>/dev/null || true
}

copy_ctl() { with_etcd etcdctl --endpoints "unix://$RECOVERY/client.sock" "$@"; }

# save_survivor makes a snapshot of what this host's member has. A copy of the data is opened as a cluster of one, which reads
# its log to the end; it listens on sockets that only root reaches, and the data itself is not touched.
save_survivor() {
	[ -d /var/lib/etcd/member ] || die "there is no etcd data on this host"
	mkdir -p "$RECOVERY/copy"
	cp -a /var/lib/etcd/member "$RECOVERY/copy/"
	with_etcd etcd --name "$NODE_NAME" --data-dir "$RECOVERY/copy" --force-new-cluster --log-level warn \
		--listen-client-urls "unix://$RECOVERY/client.sock" --advertise-client-urls http://127.0.0.1:1 \
		--listen-peer-urls "unix://$RECOVERY/peer.sock" --initial-advertise-peer-urls http://127.0.0.1:1 \
		--initial-cluster "$NODE_NAME=http://127.0.0.1:1" >"$RECOVERY/etcd.log" 2>&1 &
	member=$!
	saved=no
	if (wait_for 120 "etcd to read its data" copy_ctl endpoint health) && quiet copy_ctl snapshot save "$RECOVERY/snapshot.db"; then
		saved=yes
	fi
	kill -KILL "$member" 2>/dev/null || true
	wait "$member" 2>/dev/null || true
	[ "$saved" = yes ] || die "etcd cannot use this host's data: $(sed -n '$p' "$RECOVERY/etcd.log")"
	rm -rf "$RECOVERY/copy"
}

# check_snapshot makes sure that the uploaded snapshot is the one of the plan.
check_snapshot() {
	[ -f "$RECOVERY/snapshot.db" ] || die "$RECOVERY/snapshot.db is missing: it is put there before the step"
	printf '%s  %s\n' "$RECOVER_SNAPSHOT" "$RECOVERY/snapshot.db" | sha256sum -c --status - || die "$RECOVERY/snapshot.db is not the snapshot of the plan"
}

# make_data makes etcd's new data beside the old: another cluster ID, and revisions far ahead of all that anybody has seen, the
# old ones marked as compacted, so that whoever watches begins anew.
make_data() {
	rm -rf /var/lib/etcd/kubeone-restored /var/lib/etcd/kubeone-restored.part
	if [ "$RECOVER_FROM" = surviving-member ]; then save_survivor; else check_snapshot; fi
	(
		umask 077
		mkdir -p /var/lib/etcd
	)
	quiet with_etcd etcdutl snapshot restore "$RECOVERY/snapshot.db" --data-dir /var/lib/etcd/kubeone-restored.part \
		--name "$NODE_NAME" --initial-cluster "$NODE_NAME=$PEER_URL" --initial-advertise-peer-urls "$PEER_URL" \
		--initial-cluster-token "kubeone-${KUBEONE_RUN:-by-hand}" --bump-revision 1000000000 --mark-compacted ||
		die "the snapshot cannot be restored"
	printf '%s\n' "$RECOVER_FROM $RECOVER_SNAPSHOT" >/var/lib/etcd/kubeone-restored.part/of
	mv /var/lib/etcd/kubeone-restored.part /var/lib/etcd/kubeone-restored
}

# restore_data puts the new data in the place of the old, once. Data made by an earlier run is used only if the old had been
# moved away already: otherwise the old may have become newer since.
restore_data() {
	[ "$(cat "$RECOVERY/done" 2>/dev/null)" != "$RECOVER_FROM $RECOVER_SNAPSHOT" ] || return 0
	stop_serving
	if [ -d /var/lib/etcd/member ] || [ "$(cat /var/lib/etcd/kubeone-restored/of 2>/dev/null)" != "$RECOVER_FROM $RECOVER_SNAPSHOT" ]; then
		mount_etcd
		make_data
		unmount_etcd
	fi
	move_aside /var/lib/etcd/member
	mv /var/lib/etcd/kubeone-restored/member /var/lib/etcd/member
	printf '%s\n' "$RECOVER_FROM $RECOVER_SNAPSHOT" >"$RECOVERY/done"
	rm -rf /var/lib/etcd/kubeone-restored "$RECOVERY/snapshot.db"
	say "etcd's data is restored"
}

# begin_anew starts the control plane on the restored data: as it was here, or, on a host that had none, made by kubeadm around
# the data. What the restored cluster has of its own (addons, roles) stays as it was.
begin_anew() {
	config=$(plain_config file_cluster)
	if [ ! -f "$RECOVERY/made" ] && [ -f /etc/kubernetes/kubelet.conf ] && [ -f /etc/kubernetes/manifests/kube-apiserver.yaml ]; then
		kubeadm init phase etcd local --config "$config"
		systemctl -q enable kubelet.service
		systemctl start kubelet.service
		return 0
	fi
	: >"$RECOVERY/made"
	systemctl -q enable kubelet.service
	kubeadm init --config "$config" --skip-token-print --skip-phases bootstrap-token,addon,show-join-command --ignore-preflight-errors "$(ignored)"
	rm -f /etc/kubernetes/super-admin.conf
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
}

encryption_text() { cat "$SECRETS/encryption.yaml"; }

# put_encryption gives the API server the backup's configuration of encryption at rest, where it looks for it.
put_encryption() {
	[ -z "$ENCRYPTION_PATH" ] || [ ! -f "$SECRETS/encryption.yaml" ] || put "$ENCRYPTION_PATH" 0600 encryption_text
}

stage_restore() {
	fence_mark yes
	(
		umask 077
		mkdir -p "$RECOVERY"
	)
	restore_data
	[ ! -f "$SECRETS/pki.tar" ] || stage_pki
	put_encryption
	begin_anew
	wait_for 240 "this host's API server" readyz
	wait_for 120 "the kubelet's /healthz" kubelet_healthy
	wait_for 240 "this host's controller manager and scheduler" controllers_healthy
	mark yes
	rm -rf "$RECOVERY"
}
