# A verified snapshot of etcd from this host's own member, kept on this host. These lines run as part of a stage, and
# alone, by kubeone-snapshot.service.

SNAPSHOTS=/var/lib/kubeone/snapshots
ETCD_DATA=/var/lib/etcd
PART=kubeone-snapshot.part
RESERVE=262144 # KiB that must stay free: a full disk stops etcd

# containers_of NAME prints the containers of a static pod, running or not: "etcd". A control plane that this cluster hosts for
# another one may have containers of these names in other namespaces.
containers_of() {
	"$BIN/ctr" -n k8s.io containers ls -q "labels.\"io.kubernetes.container.name\"==$1,labels.\"io.kubernetes.pod.namespace\"==kube-system" 2>/dev/null
}

# etcd_container prints the ID of the container that etcd runs in.
etcd_container() {
	running=$("$BIN/ctr" -n k8s.io tasks ls 2>/dev/null | while read -r id _ state; do [ "$state" != RUNNING ] || printf '%s\n' "$id"; done)
	containers_of etcd | while read -r id; do
		case " $(printf '%s' "$running" | tr '\n' ' ') " in *" $id "*) printf '%s\n' "$id" ;; esac
	done | sed -n 1p
}

# in_etcd PROGRAM ARGUMENT... runs a program of etcd's image where etcd runs. It sees etcd's data and certificates.
in_etcd() { "$BIN/ctr" -n k8s.io tasks exec --exec-id "kubeone-snapshot-$$" "$etcd" "$@"; }

# free_below PATH prints how many KiB are free on the file system.
free_below() { df -Pk "$1" | sed -n '$p' | { read -r _ _ _ free _ && printf '%s\n' "$free"; }; }

# room_for_snapshot dies when a copy of the database would fill a disk.
room_for_snapshot() {
	size=$(du -k "$ETCD_DATA/member/snap/db" 2>/dev/null | { read -r size _ && printf '%s\n' "$size"; }) || die "there is no etcd data on this host"
	for dir in "$ETCD_DATA" "$SNAPSHOTS"; do
		free=$(free_below "$dir")
		[ "$free" -gt $((size + RESERVE)) ] ||
			die "no room for a snapshot: $((free / 1024)) MiB are free below $dir, $(((size + RESERVE) / 1024)) MiB are needed"
	done
}

# sealed FILE succeeds when the file ends with the sha256 of all before it, as a whole snapshot does.
sealed() {
	bytes=$(wc -c <"$1")
	[ $((bytes % 512)) -eq 32 ] || return 1
	want=$(tail -c 32 "$1" | od -An -v -tx1 | tr -d ' \n')
	got=$(head -c $((bytes - 32)) "$1" | sha256sum)
	[ "${got%% *}" = "$want" ]
}

# unfinished removes what is not a snapshot yet, also that of a run that was killed.
unfinished() { rm -f "$ETCD_DATA/$PART" "$ETCD_DATA/$PART.part" "$SNAPSHOTS"/.*.db; }

# take_snapshot REASON takes, verifies and keeps a snapshot, and then removes the oldest. Until it is verified it has
# another name and is in etcd's own directory, the only one that its container shares with the host.
take_snapshot() {
	private "$SNAPSHOTS"
	# As long as etcd may take to give a snapshot.
	lock_file "$SNAPSHOTS/.lock" 900 || die "another snapshot has not ended within 15 minutes"
	unfinished
	trap unfinished EXIT
	etcd=$(etcd_container)
	[ -n "$etcd" ] || die "etcd does not run on this host"
	room_for_snapshot
	pki=/etc/kubernetes/pki/etcd
	# Its chatter is shown only when it fails; none of it is secret.
	said=$(in_etcd etcdctl --endpoints https://127.0.0.1:2379 --cacert "$pki/ca.crt" --cert "$pki/server.crt" --key "$pki/server.key" \
		--command-timeout 900s snapshot save "$ETCD_DATA/$PART" 2>&1) || die "etcd gives no snapshot: $(printf '%s\n' "$said" | tail -n 2)"
	sealed "$ETCD_DATA/$PART" || die "the snapshot is damaged: its checksum is wrong"
	about=$(in_etcd etcdutl snapshot status "$ETCD_DATA/$PART" -w json 2>&1) || die "the snapshot is damaged: $(printf '%s\n' "$about" | tail -n 2)"
	keep_snapshot "$NODE_NAME-$(date -u +%Y%m%dT%H%M%SZ)-$1.db"
}

# keep_snapshot NAME gives the snapshot its name and place.
keep_snapshot() {
	# Where the directories are on different disks, mv copies: under a name that nobody takes for a snapshot's.
	mv -f "$ETCD_DATA/$PART" "$SNAPSHOTS/.$1"
	chmod 0600 "$SNAPSHOTS/.$1"
	sync "$SNAPSHOTS/.$1" 2>/dev/null || sync
	mv -f "$SNAPSHOTS/.$1" "$SNAPSHOTS/$1"
	say "snapshot $SNAPSHOTS/$1: $(printf '%s\n' "$about" | sed -n 's/.*"revision":\([0-9]*\),"totalKey":\([0-9]*\).*/revision \1, \2 keys/p'), sha256 $(sha256sum <"$SNAPSHOTS/$1" | sed 's/ .*//')"
	forget_snapshots "$SNAPSHOTS/$1"
}

# forget_snapshots FILE removes this host's oldest, whose time is in their names. It never removes the one just made, which is
# not the newest where the clock was set back, nor the latest that was taken before a change.
forget_snapshots() {
	before=
	for file in "$SNAPSHOTS/$NODE_NAME"-*-before-change.db; do before=$file; done
	for file in "$SNAPSHOTS/$NODE_NAME"-*.db; do printf '%s\n' "$file"; done | sort -r | sed "1,${KEEP_SNAPSHOTS}d" | while read -r file; do
		case $file in "$1" | "$before") ;; *) rm -f "$file" ;; esac
	done
}
