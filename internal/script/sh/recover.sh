# stages fence, restore: recover a cluster without quorum from a copy of its data. They delete nothing: a host's former
# files are kept in /var/lib/kubeone-old, dated. Each stage resumes what an earlier run has left.
#
# Variables, set by RestoreParams in internal/plan/step/remove.go except where noted:
#
#	RECOVER_FROM      surviving-member|snapshot|backup
#	RECOVER_SNAPSHOT  sha256 of the snapshot in $RECOVERY; "" for a surviving member
#	RECOVER_KUBELET   yes: make new credentials for the kubelet
#	ENCRYPTION_PATH   where the backup's API server reads its encryption configuration; "" if it has none
#	RECOVERY          working directory, for root only; set by script.go
#	PEER_URL          URL of this host's etcd member for other members; set by script.go
#	ETCD_IMAGE        the release's image of etcd; "" for none; set by script.go

# fence_text prints the marker of a fenced host.

fence_text() {
	printf 'cluster=%s\nrole=%s\nrun=%s\ncomplete=no\nfenced=%s\n' \
		"$CLUSTER" "$ROLE" "${KUBEONE_RUN:-by-hand}" "${KUBEONE_RUN:-by-hand}"
	[ -z "$life" ] || printf 'epoch=%s\n' "$life"
	[ "$restoring" = no ] || printf 'restoring=yes\n'
	identity_text
}

# fence_mark yes|no marks this host as fenced by a recovery; yes: the cluster is being restored on it. Only a recovery
# or a join starts its control plane again.
fence_mark() {
	restoring=$1 life=
	if [ -f "$MARKER" ]; then
		owner=$(sed -n 's/^cluster=//p' "$MARKER")
		[ "$owner" = "$CLUSTER" ] || die "this host belongs to cluster ${owner}"
		life=$(sed -n 's/^epoch=//p' "$MARKER")
	fi
	put "$MARKER" 0644 fence_text
}

# still_lost dies if etcd has its quorum again and no earlier run has changed anything here.
still_lost() {
	grep -qs '^fenced=' "$MARKER" || ! etcd_votes ||
		die "etcd has its quorum again, and nothing was stopped here: there is nothing to recover. Run kubeone apply"
}

# serving [PROGRAM] prints the process IDs of this host's control plane, or of PROGRAM only.
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

# stop_serving stops and disables the kubelet, so that it starts no static pods, not even after a reboot. Then it ends
# etcd, the API server and the controllers. etcd gets SIGTERM first, so that it writes how far its log is committed.
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

# latest PATH... prints the existing path with the latest time in its name.
latest() {
	for path in "$@"; do [ ! -e "$path" ] || printf '%s\n' "$path"; done |
		sed -n 's/.*[-/]\([0-9]\{8\}T[0-9]\{6\}Z[.1]*\).*/\1 &/p' | sort | sed -n '$s/^[^ ]* //p'
}

# take_back FROM DIRECTORY moves entries of FROM to DIRECTORY, unless they exist there.
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

# unfence restores what a fence moved aside, so that this host's own data can be used. The kubelet stays off.
unfence() {
	if [ ! -f /etc/kubernetes/pki/ca.key ]; then
		take_back "$(latest /var/lib/kubeone-old/*/*etc-kubernetes /etc/kubernetes/kubeone-old-*)" /etc/kubernetes
		take_back "$(latest /var/lib/kubeone-old/*/*etc-kubernetes-manifests)" /etc/kubernetes/manifests
	fi
	kept=$(latest /var/lib/kubeone-old/*/*var-lib-etcd /var/lib/kubeone-old/*/*var-lib-etcd-member \
		/var/lib/etcd/kubeone-old-*)
	case $kept in *-member) return 0 ;; esac # moved aside as unusable, and not by a fence
	take_back "$kept" /var/lib/etcd
}

# guard_text prints the files that the guard runs from.
guard_text() { cat /etc/kubeone/guard.sh /etc/systemd/system/kubeone-guard.service; }

# guard_off stops the guard and opens the port on the host where the cluster is restored: there is no other member to
# ask. An API server that starts behind a closed port cannot reach itself, and takes minutes to become ready. mark
# starts the guard.
guard_off() {
	systemctl stop kubeone-guard.service 2>/dev/null || true
	nft delete table inet kubeone-guard 2>/dev/null || true # the guard's own ExecStopPost does this, unless it was killed
}

# guard_on installs and starts guard.sh, if this host has nft and curl. It notes what it started only after the start:
# if an earlier run was killed before that, an older guard may be running.
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
	rm -rf "$RECOVERY" # of an abandoned restore on this host
}

# with_etcd PROGRAM ARGUMENT... runs a program of the mounted etcd image.
with_etcd() {
	program=$1
	shift
	"$ETCD_ROOT/usr/local/bin/$program" "$@"
}

# ETCD_ROOT is where mount_etcd has mounted the image.
ETCD_ROOT=/run/kubeone/etcd

# mount_etcd mounts the image of the etcd that runs here, or else the release's. If a killed run has left its mount in
# place, it mounts the image beside it.
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

# copy_ctl ARGUMENT... runs etcdctl against the etcd that is open on the copy, and keeps its output for error messages.
copy_ctl() { with_etcd etcdctl --endpoints "unix://$RECOVERY/client.sock" "$@" >"$RECOVERY/said" 2>&1; }

# open_data DIRECTORY ARGUMENT... starts a temporary etcd on the data in DIRECTORY. It listens on sockets of root's
# only.
open_data() {
	opened=$1
	shift
	# Not with_etcd: if a function runs in the background, kill ends only its shell. etcd would keep its image mounted.
	"$ETCD_ROOT/usr/local/bin/etcd" --name "$NODE_NAME" --data-dir "$opened" --log-level warn \
		--listen-client-urls "unix://$RECOVERY/client.sock" --advertise-client-urls http://127.0.0.1:1 \
		--listen-peer-urls "unix://$RECOVERY/peer.sock" --initial-advertise-peer-urls http://127.0.0.1:1 \
		--initial-cluster "$NODE_NAME=http://127.0.0.1:1" "$@" >"$RECOVERY/etcd.log" 2>&1 &
	member=$!
}

# close_data kills that etcd. Its writes are already on disk.
close_data() {
	kill -KILL "$member" 2>/dev/null || true
	wait "$member" 2>/dev/null || true
}

# quieted waits for etcd, and disarms its alarms: they stem from lost members, and block writes. It does not use
# "endpoint health", which fails during an alarm. It also deletes the Leases of the lost controllers, so that new
# leaders need not wait for their end; if that fails, they wait. Finally it checks that etcd still runs.
quieted() {
	(wait_for 120 "etcd to read its data" copy_ctl endpoint status) &&
		(wait_for 30 "etcd to lead" copy_ctl alarm list) || return 1
	! grep -q NOSPACE "$RECOVERY/said" || make_room || return 1
	copy_ctl alarm disarm || return 1
	for name in kube-controller-manager kube-scheduler; do
		copy_ctl --command-timeout 60s del "$(registry)/leases/kube-system/$name" || true
	done
	copy_ctl endpoint status
}

# make_room compacts and defragments the database: a full one would raise its alarm again with the first write.
make_room() {
	copy_ctl endpoint status -w json || return 1
	latest_revision=$(sed -n 's/.*"revision":\([0-9]*\).*/\1/p' "$RECOVERY/said")
	copy_ctl --command-timeout 600s compact --physical "$latest_revision" || true # fails if it is compacted already
	copy_ctl --command-timeout 600s defrag
}

# reasons prints the last messages of etcdctl and etcd.
reasons() {
	printf '%s; etcd: %s' "$(sed -n '$p' "$RECOVERY/said" 2>/dev/null)" "$(sed -n '$p' "$RECOVERY/etcd.log" 2>/dev/null)"
}

# save_survivor makes a snapshot of this host's member. It opens a copy of the data as a cluster of one, which applies
# the whole log; the data itself stays as it is.
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
	[ "$saved" = yes ] ||
		die "etcd cannot use this host's data: $(reasons). Recover with --on another host that has etcd's data" \
			"(one that this recovery has stopped still has it, in /var/lib/kubeone-old), or from a backup"
}

# check_snapshot dies unless the uploaded snapshot is the one of the plan.
check_snapshot() {
	[ -f "$RECOVERY/snapshot.db" ] || die "$RECOVERY/snapshot.db is missing: it is put there before the step"
	[ "$(sha256sum <"$RECOVERY/snapshot.db")" = "$RECOVER_SNAPSHOT  -" ] ||
		die "$RECOVERY/snapshot.db is not the snapshot of the plan"
}

# bump_of SNAPSHOT prints how much to add to the snapshot's revisions: they must reach EPOCH * 10^9, and grow by 10^9 at
# least. With a fixed addition, a copy from an earlier epoch might stay behind the epoch that has just ended.
bump_of() {
	about=$(with_etcd etcdutl snapshot status "$1" -w json 2>"$RECOVERY/said") ||
		die "the snapshot cannot be read: $(sed -n '$p' "$RECOVERY/said")"
	revision=$(printf '%s\n' "$about" | sed -n 's/.*"revision":\([0-9]*\).*/\1/p')
	[ -n "$revision" ] || die "the snapshot cannot be read: it tells no revision"
	lives=$((EPOCH - revision / 1000000000))
	[ "$lives" -ge 1 ] || lives=1
	printf '%s000000000\n' "$lives"
}

# drop_alarms disarms the alarms in a copy before anything is written to it.
drop_alarms() {
	open_data /var/lib/etcd/kubeone-restored.part
	dropped=no
	if quieted; then dropped=yes; fi
	unreadable=$(blind_to_copy)
	close_data
	[ "$dropped" = yes ] || die "etcd cannot use the restored data: $(reasons)"
	[ -z "$unreadable" ] || die "$unreadable"
}

# make_data makes new data for etcd beside the old. It has another cluster ID, and revisions beyond all that clients
# have seen; the old revisions are marked as compacted, so that watches start again.
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

# made succeeds if an earlier run has made the new data from the same copy.
made() {
	[ -d /var/lib/etcd/kubeone-restored/member ] &&
		[ "$(cat /var/lib/etcd/kubeone-restored/of 2>/dev/null)" = "$copied" ]
}

# restore_data replaces the old data with the new, once. It uses new data of an earlier run only if the old data has
# been moved already: otherwise the old data may have changed since.
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

# own_data dies if a member is to survive whose own data an earlier recovery has replaced with a copy.
own_data() {
	[ "$RECOVER_FROM" = surviving-member ] && [ -s "$RECOVERY/done" ] || return 0
	case $(cat "$RECOVERY/done") in "surviving-member "*) return 0 ;; esac
	die "a recovery from a copy has put that in the place of this member's own data, which is kept" \
		"in /var/lib/kubeone-old or /var/lib/etcd/kubeone-old-*: go on from the same copy," \
		"or put the data back as /var/lib/etcd/member and remove $RECOVERY/done"
}

# replace_member moves the old data aside and the new into its place. It writes the file done before that; the file
# counts only if there is data.
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

# keep_replaced moves the old data to /var/lib/kubeone-old, unless that would mean to copy it.
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

# drop_leaves removes the certificates that this host's CAs have signed: kubeadm would keep expired ones.
drop_leaves() {
	for cert in /etc/kubernetes/pki/*.crt /etc/kubernetes/pki/etcd/*.crt; do
		case $cert in
		*/ca.crt | */front-proxy-ca.crt) ;;
		*) rm -f "$cert" "${cert%.crt}.key" ;;
		esac
	done
	for name in admin controller-manager scheduler; do rm -f "/etc/kubernetes/$name.conf"; done
}

# keep_edited FILE copies a file aside that was edited since a stage wrote it.
keep_edited() {
	[ -f "$1" ] || return 0
	grep -qs " $1\$" "$FILES" || return 0
	! grep " $1\$" "$FILES" | sha256sum -c - >/dev/null 2>&1 || return 0
	aside=$(dated /var/lib/kubeone-old/)
	private "$aside"
	cp -p "$1" "$aside/"
	say "$1 was edited; a copy of it is $aside/${1##*/}"
}

# joined_once succeeds if this host has completed a join, or begun a cluster. Before that, no record says which settings
# its files have, and they may be of another manifest.
joined_once() { grep -qs "^components " "$DIGESTS"; }

# start_restored starts the control plane on the restored data. If this host had a complete one, it starts that;
# otherwise kubeadm makes one for the data. Addons and roles stay as they are in the restored cluster.
start_restored() {
	guard_etcd
	config=$(plain_config file_cluster)
	if [ ! -f "$RECOVERY/made" ] && joined_once && [ -f /etc/kubernetes/kubelet.conf ] &&
		[ -f /etc/kubernetes/manifests/kube-apiserver.yaml ]; then
		# Restart everything with valid certificates: what an earlier run started may have read expired ones.
		systemctl stop kubelet.service
		end_static_pods
		kubeadm certs renew all --config "$(plain_config file_cluster_now)"
		[ ! -f "$SECRETS/pki.tar" ] || cluster_cas_known
		[ "$RECOVER_KUBELET" != yes ] || sign_kubelet
		keep_edited /etc/kubernetes/manifests/etcd.yaml
		had=$(sed -n 's/^ *image: *//p' /etc/kubernetes/manifests/etcd.yaml 2>/dev/null || true)
		kubeadm init phase etcd local --config "$config"
		keep_etcd_image "$had" # kubeadm may name another one, if only the names of the release's images are known
		note_files /etc/kubernetes/manifests/etcd.yaml
		if ! manifest_agrees; then
			keep_edited /etc/kubernetes/manifests/kube-apiserver.yaml
			kubeadm init phase control-plane apiserver --config "$(plain_config file_cluster_now)"
			note_files /etc/kubernetes/manifests/kube-apiserver.yaml
		fi
		systemctl -q enable kubelet.service
		# The kubelet may refuse the settings of the interrupted change.
		[ ! -f "$UPGRADING" ] || rewrite_settings
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
	kubeadm init --config "$config" --skip-token-print --skip-phases bootstrap-token,addon,show-join-command \
		--ignore-preflight-errors "$(ignored)"
	rm -f /etc/kubernetes/super-admin.conf
	# shellcheck disable=SC2086 # a list
	record $NODE_DIGESTS
	rm -f "$UPGRADING"
}

# encryption_text prints the backup's encryption configuration.
encryption_text() { cat "$SECRETS/encryption.yaml"; }

# put_encryption installs the backup's encryption configuration where its API server reads it, and removes this host's
# own, which is of another time.
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

# blind_to_copy prints why the API server could not read the Secrets in the copy; nothing if it can.
blind_to_copy() {
	(never_blind copy_answers 2>&1 >/dev/null) | sed -n 's/^error: \(.*\)/\1. Recover from a backup that has the keys/p'
}

# copy_answers ARGUMENT... runs etcdctl against the etcd that is open on the copy.
copy_answers() { with_etcd etcdctl --endpoints "unix://$RECOVERY/client.sock" --command-timeout 60s "$@"; }

stage_restore() {
	still_lost
	# The notes of an earlier restore count only if that one has not ended.
	grep -qs '^restoring=yes$' "$MARKER" ||
		rm -rf "$RECOVERY/done" "$RECOVERY/made" "$RECOVERY/copy" /var/lib/etcd/kubeone-restored
	fence_mark yes
	private "$RECOVERY"
	put_encryption
	restore_data
	[ ! -f "$SECRETS/pki.tar" ] || place_pki
	guard_off
	start_restored
	await_api_server 240
	wait_for 120 "the kubelet's /healthz" kubelet_healthy
	wait_for_pods "kube-controller-manager kube-scheduler" 240 "this host's controller manager and scheduler" \
		controllers_healthy
	[ "$RECOVER_KUBELET" != yes ] || settle_kubelet
	mark yes
	rm -rf "$RECOVERY"
}
