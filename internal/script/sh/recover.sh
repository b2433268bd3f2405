# stages fence, restore: a cluster whose quorum is lost, brought back from a copy of its data. Nothing is deleted: what a host
# held is in /var/lib/kubeone-old afterwards, dated. Each stage goes on from whatever an earlier run left.

fence_text() {
	printf 'cluster=%s\nrole=%s\nrun=%s\ncomplete=no\nfenced=%s\n' "$CLUSTER" "$ROLE" "${KUBEONE_RUN:-by-hand}" "${KUBEONE_RUN:-by-hand}"
	[ -z "$life" ] || printf 'epoch=%s\n' "$life"
	[ "$restoring" = no ] || printf 'restoring=yes\n'
	identity_text
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

# still_lost ends a recovery before it changes anything here, where etcd has its quorum again: it was planned before that. What
# an earlier run has begun goes on.
still_lost() {
	grep -qs '^fenced=' "$MARKER" || ! etcd_votes || die "etcd has its quorum again, and nothing was stopped here: there is nothing to recover. Run kubeone apply"
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

# latest PATH... prints the one with the latest time in its path; those that do not exist do not count.
latest() {
	for path in "$@"; do [ ! -e "$path" ] || printf '%s\n' "$path"; done |
		sed -n 's/.*[-/]\([0-9]\{8\}T[0-9]\{6\}Z[.1]*\).*/\1 &/p' | sort | sed -n '$s/^[^ ]* //p'
}

# take_back FROM DIRECTORY moves what is missing in the directory there from where it was kept.
take_back() {
	[ -n "$1" ] || return 0
	if [ ! -e "$2" ]; then
		mv "$1" "$2"
		say "$1 is $2 again"
		return 0
	fi
	for entry in "$1"/*; do
		if [ -e "$entry" ] && [ ! -e "$2/${entry##*/}" ]; then
			mv "$entry" "$2/"
			say "$entry is $2/${entry##*/} again"
		fi
	done
	rmdir "$1" 2>/dev/null || true
}

# unfence gives a host back what a fence took away: its own data is to be used after all. The kubelet stays off.
unfence() {
	if [ ! -f /etc/kubernetes/pki/ca.key ]; then
		take_back "$(latest /var/lib/kubeone-old/*/*etc-kubernetes /etc/kubernetes/kubeone-old-*)" /etc/kubernetes
		take_back "$(latest /var/lib/kubeone-old/*/*etc-kubernetes-manifests)" /etc/kubernetes/manifests
	fi
	kept=$(latest /var/lib/kubeone-old/*/*var-lib-etcd /var/lib/kubeone-old/*/*var-lib-etcd-member /var/lib/etcd/kubeone-old-*)
	case $kept in *-member) return 0 ;; esac # set aside because it was of no use, not by a fence
	take_back "$kept" /var/lib/etcd
}

# guard_text is all that the guard runs from.
guard_text() { cat /etc/kubeone/guard.sh /etc/systemd/system/kubeone-guard.service; }

# guard_off opens the port of the host on which the cluster begins anew, where there is no other member to ask: an API server
# that starts while the port is closed is refused by itself, and is not ready for minutes. mark starts the guard again.
guard_off() {
	systemctl stop kubeone-guard.service 2>/dev/null || true
	nft delete table inet kubeone-guard 2>/dev/null || true # which it deletes itself, unless it was killed
}

# guard_on has this host watched by guard.sh, if it has what that needs. What runs may be older than the files, where an
# earlier run was killed in here: what was started is noted after it was.
guard_on() {
	have nft && have curl || return 0
	put /etc/kubeone/guard.sh 0700 file_guard
	put /etc/systemd/system/kubeone-guard.service 0644 file_guard_unit
	if guard_text | cmp -s - /run/kubeone/guard && systemctl is-active --quiet kubeone-guard.service; then
		systemctl -q enable kubeone-guard.service
		return 0
	fi
	systemctl daemon-reload
	systemctl -q enable kubeone-guard.service
	systemctl restart kubeone-guard.service
	put /run/kubeone/guard 0600 guard_text
}

stage_fence() {
	still_lost
	fence_mark no
	stop_serving
	move_aside old /etc/kubernetes/manifests /var/lib/etcd /etc/kubernetes
	rm -rf "$RECOVERY" # of a restore here that is given up
}

# with_etcd PROGRAM ARGUMENT... runs a program of etcd's image.
with_etcd() {
	program=$1
	shift
	"$ETCD_ROOT/usr/local/bin/$program" "$@"
}

ETCD_ROOT=/run/kubeone/etcd

# mount_etcd makes the programs of etcd's image runnable: of the one that runs here, else of the release's. Where a run that was
# killed has left its mount, the image is mounted beside it.
mount_etcd() {
	image=$(sed -n 's/^ *image: *//p' /etc/kubernetes/manifests/etcd.yaml 2>/dev/null || true)
	[ -n "$image" ] || image=$ETCD_IMAGE
	systemctl start containerd.service
	wait_for 60 "containerd" "$BIN/ctr" version
	unmount_etcd
	for ETCD_ROOT in /run/kubeone/etcd "/run/kubeone/etcd.$$"; do
		mkdir -p "$ETCD_ROOT"
		quiet "$BIN/ctr" -n k8s.io images mount "$image" "$ETCD_ROOT" && return 0
	done
	die "the image $image cannot be mounted"
}

unmount_etcd() {
	[ -d "$ETCD_ROOT" ] || return 0
	"$BIN/ctr" -n k8s.io images unmount --rm "$ETCD_ROOT" >/dev/null 2>&1 || true
	rmdir "$ETCD_ROOT" 2>/dev/null || true
}

# copy_ctl runs etcdctl, and keeps what it says for an error.
copy_ctl() { with_etcd etcdctl --endpoints "unix://$RECOVERY/client.sock" "$@" >"$RECOVERY/said" 2>&1; }

# open_data DIRECTORY ARGUMENT... starts etcd on data for a moment. It listens on sockets that only root reaches.
open_data() {
	opened=$1
	shift
	# Not with_etcd: of a function in the background a kill ends the shell, and leaves etcd, which keeps its image mounted.
	"$ETCD_ROOT/usr/local/bin/etcd" --name "$NODE_NAME" --data-dir "$opened" --log-level warn \
		--listen-client-urls "unix://$RECOVERY/client.sock" --advertise-client-urls http://127.0.0.1:1 \
		--listen-peer-urls "unix://$RECOVERY/peer.sock" --initial-advertise-peer-urls http://127.0.0.1:1 \
		--initial-cluster "$NODE_NAME=http://127.0.0.1:1" "$@" >"$RECOVERY/etcd.log" 2>&1 &
	member=$!
}

# close_data ends it. What it has written is on the disk.
close_data() {
	kill -KILL "$member" 2>/dev/null || true
	wait "$member" 2>/dev/null || true
}

# quieted waits until etcd answers, and takes its alarms back: their members are gone, and nothing could be written. It does
# not ask for health, which etcdctl denies while there is an alarm. The controllers' leaders are gone, too: their successors
# need not wait until those Leases end, and do where they cannot be deleted. An etcd that ended of that is not quiet.
quieted() {
	(wait_for 120 "etcd to read its data" copy_ctl endpoint status) && (wait_for 30 "etcd to lead" copy_ctl alarm list) || return 1
	! grep -q NOSPACE "$RECOVERY/said" || make_room || return 1
	copy_ctl alarm disarm || return 1
	for name in kube-controller-manager kube-scheduler; do
		copy_ctl --command-timeout 60s del "$(registry)/leases/kube-system/$name" || true
	done
	copy_ctl endpoint status
}

# make_room forgets history and gives its space back: a full database would raise its alarm again with the first write.
make_room() {
	copy_ctl endpoint status -w json || return 1
	latest_revision=$(sed -n 's/.*"revision":\([0-9]*\).*/\1/p' "$RECOVERY/said")
	copy_ctl --command-timeout 600s compact --physical "$latest_revision" || true # it may be compacted so far already
	copy_ctl --command-timeout 600s defrag
}

# reasons is what etcd and etcdctl said last.
reasons() { printf '%s; etcd: %s' "$(sed -n '$p' "$RECOVERY/said" 2>/dev/null)" "$(sed -n '$p' "$RECOVERY/etcd.log" 2>/dev/null)"; }

# save_survivor makes a snapshot of what this host's member has. A copy of the data is opened as a cluster of one, which reads
# its log to the end; the data itself is not touched.
save_survivor() {
	[ -d /var/lib/etcd/member ] || die "there is no etcd data on this host"
	rm -rf "$RECOVERY/copy"
	mkdir -p "$RECOVERY/copy"
	cp -a /var/lib/etcd/member "$RECOVERY/copy/"
	open_data "$RECOVERY/copy" --force-new-cluster
	saved=no
	if quieted && copy_ctl --command-timeout 900s snapshot save "$RECOVERY/snapshot.db"; then
		saved=yes
	fi
	unreadable=$(blind_to_copy)
	close_data
	rm -rf "$RECOVERY/copy"
	[ "$saved" = no ] || [ -z "$unreadable" ] || die "$unreadable"
	[ "$saved" = yes ] || die "etcd cannot use this host's data: $(reasons). Recover with --on another host that has etcd's data (one that this recovery has stopped still has it, in /var/lib/kubeone-old), or from a backup"
}

# check_snapshot makes sure that the uploaded snapshot is the one of the plan.
check_snapshot() {
	[ -f "$RECOVERY/snapshot.db" ] || die "$RECOVERY/snapshot.db is missing: it is put there before the step"
	[ "$(sha256sum <"$RECOVERY/snapshot.db")" = "$RECOVER_SNAPSHOT  -" ] || die "$RECOVERY/snapshot.db is not the snapshot of the plan"
}

# bump_of SNAPSHOT prints by how much its revisions are raised: to the thousand million of the cluster's new life, and by one at
# least. A copy may be of an earlier life than the one that ended: raised by a fixed amount it might stay behind that.
bump_of() {
	about=$(with_etcd etcdutl snapshot status "$1" -w json 2>"$RECOVERY/said") || die "the snapshot cannot be read: $(sed -n '$p' "$RECOVERY/said")"
	revision=$(printf '%s\n' "$about" | sed -n 's/.*"revision":\([0-9]*\).*/\1/p')
	[ -n "$revision" ] || die "the snapshot cannot be read: it tells no revision"
	lives=$((EPOCH - revision / 1000000000))
	[ "$lives" -ge 1 ] || lives=1
	printf '%s000000000\n' "$lives"
}

# drop_alarms takes back what a copy has of alarms, before anybody writes to it.
drop_alarms() {
	open_data /var/lib/etcd/kubeone-restored.part
	dropped=no
	if quieted; then dropped=yes; fi
	unreadable=$(blind_to_copy)
	close_data
	[ "$dropped" = yes ] || die "etcd cannot use the restored data: $(reasons)"
	[ -z "$unreadable" ] || die "$unreadable"
}

# make_data makes etcd's new data beside the old: another cluster ID, and revisions far ahead of all that anybody has seen, the
# old ones marked as compacted, so that whoever watches begins anew.
make_data() {
	rm -rf /var/lib/etcd/kubeone-restored /var/lib/etcd/kubeone-restored.part
	if [ "$RECOVER_FROM" = surviving-member ]; then save_survivor; else check_snapshot; fi
	private /var/lib/etcd
	bump=$(bump_of "$RECOVERY/snapshot.db")
	quiet with_etcd etcdutl snapshot restore "$RECOVERY/snapshot.db" --data-dir /var/lib/etcd/kubeone-restored.part \
		--name "$NODE_NAME" --initial-cluster "$NODE_NAME=$PEER_URL" --initial-advertise-peer-urls "$PEER_URL" \
		--initial-cluster-token "kubeone-${KUBEONE_RUN:-by-hand}" --bump-revision "$bump" --mark-compacted ||
		die "the snapshot cannot be restored"
	[ "$RECOVER_FROM" = surviving-member ] || drop_alarms
	printf '%s\n' "$RECOVER_FROM $RECOVER_SNAPSHOT" >/var/lib/etcd/kubeone-restored.part/of
	mv /var/lib/etcd/kubeone-restored.part /var/lib/etcd/kubeone-restored
}

# made succeeds when an earlier run has made the new data from the same copy.
made() { [ -d /var/lib/etcd/kubeone-restored/member ] && [ "$(cat /var/lib/etcd/kubeone-restored/of 2>/dev/null)" = "$copied" ]; }

# restore_data puts the new data in the place of the old, once. Data made by an earlier run is used only if the old had been
# moved away already: otherwise the old may have become newer since.
restore_data() {
	copied="$RECOVER_FROM $RECOVER_SNAPSHOT"
	own_data
	if [ ! -d /var/lib/etcd/member ] || [ "$(cat "$RECOVERY/done" 2>/dev/null)" != "$copied" ]; then
		stop_serving
		if [ -d /var/lib/etcd/member ] || ! made; then
			rm -f "$RECOVERY/done"
			[ "$RECOVER_FROM" != surviving-member ] || [ -d /var/lib/etcd/member ] || unfence
			mount_etcd
			make_data
			unmount_etcd
		fi
		replace_member
	fi
	rm -rf /var/lib/etcd/kubeone-restored "$RECOVERY/snapshot.db"
	keep_replaced
}

# own_data dies where a member is to survive whose own data an earlier recovery has replaced by a copy: that is not what it had.
own_data() {
	[ "$RECOVER_FROM" = surviving-member ] && [ -s "$RECOVERY/done" ] || return 0
	case $(cat "$RECOVERY/done") in "surviving-member "*) return 0 ;; esac
	die "a recovery from a copy has put that in the place of this member's own data, which is kept in /var/lib/kubeone-old or /var/lib/etcd/kubeone-old-*: go on from the same copy, or put the data back as /var/lib/etcd/member and remove $RECOVERY/done"
}

# replace_member renames the old data beside it and the new into its place. That the new is in its place is noted before it
# is: the note counts only once there is data.
replace_member() {
	if [ -d /var/lib/etcd/member ]; then
		replaced=$(dated /var/lib/etcd/kubeone-old-)
		private "$replaced"
		mv /var/lib/etcd/member "$replaced/member"
	fi
	printf '%s\n' "$copied" >"$RECOVERY/done"
	mv /var/lib/etcd/kubeone-restored/member /var/lib/etcd/member
	say "etcd's data is restored"
}

# keep_replaced moves the old data to where everything else is kept, unless it would have to be copied.
keep_replaced() {
	! fixed /var/lib/etcd && ! fixed /var/lib/kubeone-old || return 0
	for old in /var/lib/etcd/kubeone-old-*; do
		[ -d "$old/member" ] || continue
		aside=$(dated /var/lib/kubeone-old/)
		private "$aside"
		mv "$old/member" "$aside/var-lib-etcd-member"
		rmdir "$old"
		say "/var/lib/etcd/member is now $aside/var-lib-etcd-member"
	done
}

# drop_leaves removes what the CAs here have signed, before kubeadm makes it anew: it would keep what has expired.
drop_leaves() {
	for cert in /etc/kubernetes/pki/*.crt /etc/kubernetes/pki/etcd/*.crt; do
		case $cert in
		*/ca.crt | */front-proxy-ca.crt) ;;
		*) rm -f "$cert" "${cert%.crt}.key" ;;
		esac
	done
	for name in admin controller-manager scheduler; do rm -f "/etc/kubernetes/$name.conf"; done
}

# keep_edited FILE keeps a copy of a file of ours that somebody has changed, before it is written anew.
keep_edited() {
	[ -f "$1" ] || return 0
	grep -qs " $1\$" "$FILES" || return 0
	! grep " $1\$" "$FILES" | sha256sum -c - >/dev/null 2>&1 || return 0
	aside=$(dated /var/lib/kubeone-old/)
	private "$aside"
	cp -p "$1" "$aside/"
	say "$1 was changed by somebody; as it was, it is $aside/${1##*/}"
}

# joined_once succeeds where a join or a beginning of a cluster has ended on this host: until then nobody has noted of which settings its
# files are, which may be those of another manifest.
joined_once() { grep -qs "^components " "$DIGESTS"; }

# begin_anew starts the control plane on the restored data: as it was here, or, on a host that had none, or only parts, made by kubeadm
# around the data. What the restored cluster has of its own (addons, roles) stays as it was.
begin_anew() {
	guard_etcd
	config=$(plain_config file_cluster)
	if [ ! -f "$RECOVERY/made" ] && joined_once && [ -f /etc/kubernetes/kubelet.conf ] && [ -f /etc/kubernetes/manifests/kube-apiserver.yaml ]; then
		# Started anew with what is valid from now on: what an earlier run started may have certificates that were not.
		systemctl stop kubelet.service
		end_static_pods
		kubeadm certs renew all --config "$(plain_config file_cluster_now)"
		[ ! -f "$SECRETS/pki.tar" ] || cluster_cas_known
		[ "$RECOVER_KUBELET" != yes ] || sign_kubelet
		keep_edited /etc/kubernetes/manifests/etcd.yaml
		had=$(sed -n 's/^ *image: *//p' /etc/kubernetes/manifests/etcd.yaml 2>/dev/null || true)
		kubeadm init phase etcd local --config "$config"
		keep_etcd_image "$had" # of a release of which only the names are known, it may be another
		note_files /etc/kubernetes/manifests/etcd.yaml
		if ! manifest_agrees; then
			keep_edited /etc/kubernetes/manifests/kube-apiserver.yaml
			kubeadm init phase control-plane apiserver --config "$(plain_config file_cluster_now)"
			note_files /etc/kubernetes/manifests/kube-apiserver.yaml
		fi
		systemctl -q enable kubelet.service
		# What had begun here may have brought settings that the kubelet refuses.
		[ ! -f "$UPGRADING" ] || settings_anew
		systemctl start kubelet.service
		return 0
	fi
	all_authorities
	if [ ! -f "$RECOVERY/made" ]; then
		for name in $STATIC_PODS; do keep_edited "/etc/kubernetes/manifests/$name.yaml"; done
		drop_leaves
	fi
	: >"$RECOVERY/made"
	component_files
	systemctl -q enable kubelet.service
	drop_halves
	kubeadm init --config "$config" --skip-token-print --skip-phases bootstrap-token,addon,show-join-command --ignore-preflight-errors "$(ignored)"
	rm -f /etc/kubernetes/super-admin.conf
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
	rm -f "$UPGRADING"
}

encryption_text() { cat "$SECRETS/encryption.yaml"; }

# put_encryption gives the API server the backup's configuration of encryption at rest, where it looks for it, and takes what this host
# has of its own away: that is of another time.
put_encryption() {
	[ "$RECOVER_FROM" = backup ] || return 0
	case $ENCRYPTION_PATH in
	"" | "$ENCRYPTION_DIR"/*) copy_encryption ;;
	*)
		rm -f "$ENCRYPTION_PATCH"
		[ ! -f "$SECRETS/encryption.yaml" ] || put "$ENCRYPTION_PATH" 0600 encryption_text
		;;
	esac
}

# blind_to_copy prints why the API server that is to start on the copy could not read the Secrets in it; nothing where it can.
blind_to_copy() {
	(never_blind copy_answers 2>&1 >/dev/null) | sed -n 's/^error: \(.*\)/\1. Recover from a backup that has the keys/p'
}

# copy_answers ARGUMENT... asks the etcd that is open on the copy.
copy_answers() { with_etcd etcdctl --endpoints "unix://$RECOVERY/client.sock" --command-timeout 60s "$@"; }

stage_restore() {
	still_lost
	# What an earlier restore noted counts as long as that one has not ended.
	grep -qs '^restoring=yes$' "$MARKER" || rm -rf "$RECOVERY/done" "$RECOVERY/made" "$RECOVERY/copy" /var/lib/etcd/kubeone-restored
	fence_mark yes
	private "$RECOVERY"
	put_encryption
	restore_data
	[ ! -f "$SECRETS/pki.tar" ] || place_pki
	guard_off
	begin_anew
	await_api_server 240
	wait_for 120 "the kubelet's /healthz" kubelet_healthy
	wait_for_pods "kube-controller-manager kube-scheduler" 240 "this host's controller manager and scheduler" controllers_healthy
	[ "$RECOVER_KUBELET" != yes ] || settle_kubelet
	mark yes
	rm -rf "$RECOVERY"
}
