# Takes a verified snapshot of this host's etcd member and keeps it on the host. This file is part of the stages, and of
# /etc/kubeone/snapshot.sh, which kubeone-snapshot.service runs.
#
# Variables, set by script.go and snapshots.go: BIN (directory), NODE_NAME, KEEP_SNAPSHOTS (number, 1 at least).

SNAPSHOTS=/var/lib/kubeone/snapshots
ETCD_DATA=/var/lib/etcd
PART=kubeone-snapshot.part
RESERVE=262144 # KiB that must stay free, because a full disk stops etcd

# containers_of NAME prints the IDs of a static pod's containers, running or not. The filter by namespace skips control
# planes that this cluster hosts for others.
containers_of() {
	pod_filter="labels.\"io.kubernetes.container.name\"==$1,labels.\"io.kubernetes.pod.namespace\"==kube-system"
	"$BIN/ctr" -n k8s.io containers ls -q "$pod_filter" 2>/dev/null
}

# etcd_container prints the ID of the container that etcd runs in.
etcd_container() {
	running=$("$BIN/ctr" -n k8s.io tasks ls 2>/dev/null |
		while read -r id _ state; do [ "$state" != RUNNING ] || printf '%s\n' "$id"; done)
	containers_of etcd | while read -r id; do
		case " $(printf '%s' "$running" | tr '\n' ' ') " in *" $id "*) printf '%s\n' "$id" ;; esac
	done | sed -n 1p
}

# in_etcd PROGRAM ARGUMENT... runs a program in the container $etcd. It sees etcd's data and certificates.
in_etcd() { "$BIN/ctr" -n k8s.io tasks exec --exec-id "kubeone-snapshot-$$" "$etcd" "$@"; }

# free_below PATH prints the free space of the file system in KiB.
free_below() { df -Pk "$1" | sed -n '$p' | { read -r _ _ _ free _ && printf '%s\n' "$free"; }; }

# room_for_snapshot dies if a copy of the database would fill a disk.
room_for_snapshot() {
	size=$(du -k "$ETCD_DATA/member/snap/db" 2>/dev/null | { read -r size _ && printf '%s\n' "$size"; }) ||
		die "there is no etcd data on this host"
	for dir in "$ETCD_DATA" "$SNAPSHOTS"; do
		free=$(free_below "$dir")
		[ "$free" -gt $((size + RESERVE)) ] ||
			die "no room for a snapshot: $((free / 1024)) MiB are free below $dir, $(((size + RESERVE) / 1024)) MiB are needed"
	done
}

# sealed FILE succeeds if the file ends with the sha256 of everything before, as a complete snapshot does.
sealed() {
	bytes=$(wc -c <"$1")
	[ $((bytes % 512)) -eq 32 ] || return 1
	want=$(tail -c 32 "$1" | od -An -v -tx1 | tr -d ' \n')
	got=$(head -c $((bytes - 32)) "$1" | sha256sum)
	[ "${got%% *}" = "$want" ]
}

# unfinished removes incomplete snapshots, also those of killed runs.
unfinished() { rm -f "$ETCD_DATA/$PART" "$ETCD_DATA/$PART.part" "$SNAPSHOTS"/.*.db; }

# take_snapshot REASON takes, verifies and keeps a snapshot, and then removes the oldest ones. Until it is verified, it
# has another name and is in etcd's data directory, the only one that etcd's container shares with the host.
take_snapshot() {
	private "$SNAPSHOTS"
	# 900 s is how long etcd may take for a snapshot.
	lock_file "$SNAPSHOTS/.lock" 900 || die "another snapshot has not ended within 15 minutes"
	unfinished
	trap unfinished EXIT
	etcd=$(etcd_container)
	[ -n "$etcd" ] || die "etcd does not run on this host"
	room_for_snapshot
	pki=/etc/kubernetes/pki/etcd
	# The output is shown only on failure; it has no secrets.
	said=$(in_etcd etcdctl --endpoints https://127.0.0.1:2379 \
		--cacert "$pki/ca.crt" --cert "$pki/server.crt" --key "$pki/server.key" \
		--command-timeout 900s snapshot save "$ETCD_DATA/$PART" 2>&1) ||
		die "etcd gives no snapshot: $(printf '%s\n' "$said" | tail -n 2)"
	sealed "$ETCD_DATA/$PART" || die "the snapshot is damaged: its checksum is wrong"
	about=$(in_etcd etcdutl snapshot status "$ETCD_DATA/$PART" -w json 2>&1) ||
		die "the snapshot is damaged: $(printf '%s\n' "$about" | tail -n 2)"
	keep_snapshot "$NODE_NAME-$(date -u +%Y%m%dT%H%M%SZ)-$1.db"
}

# keep_snapshot NAME moves the snapshot to its place.
keep_snapshot() {
	# If the directories are on different disks, mv copies. The hidden name keeps a partial copy from counting as a
	# snapshot.
	mv -f "$ETCD_DATA/$PART" "$SNAPSHOTS/.$1"
	chmod 0600 "$SNAPSHOTS/.$1"
	sync "$SNAPSHOTS/.$1" 2>/dev/null || sync
	mv -f "$SNAPSHOTS/.$1" "$SNAPSHOTS/$1"
	contents=$(printf '%s\n' "$about" |
		sed -n 's/.*"revision":\([0-9]*\),"totalKey":\([0-9]*\).*/revision \1, \2 keys/p')
	say "snapshot $SNAPSHOTS/$1: $contents, sha256 $(sha256sum <"$SNAPSHOTS/$1" | sed 's/ .*//')"
	forget_snapshots "$SNAPSHOTS/$1"
}

# forget_snapshots FILE removes this host's oldest snapshots, by the time in their names. It keeps FILE, which is not
# the newest if the clock was set back, and the latest one before a change.
forget_snapshots() {
	before=
	for file in "$SNAPSHOTS/$NODE_NAME"-*-before-change.db; do before=$file; done
	for file in "$SNAPSHOTS/$NODE_NAME"-*.db; do printf '%s\n' "$file"; done | sort -r |
		sed "1,${KEEP_SNAPSHOTS}d" | while read -r file; do
		case $file in "$1" | "$before") ;; *) rm -f "$file" ;; esac
	done
}
