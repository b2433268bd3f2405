# Defragments this host's etcd member if enough of its database is free. This file is part of
# /etc/kubeone/addons/etcd-defrag.sh, which kubeone-etcd-defrag.service runs, after private.sh and snapshot.sh.
#
# Variables: BIN (directory) and NODE_NAME, set by hostaddons.go; THRESHOLD (percent), set by the service.

# ask_etcd ARGUMENT... runs etcdctl with this host's member.
ask_etcd() {
	pki=/etc/kubernetes/pki/etcd
	in_etcd etcdctl --endpoints https://127.0.0.1:2379 --cacert "$pki/ca.crt" --cert "$pki/server.crt" \
		--key "$pki/server.key" "$@"
}

# number_of FIELD prints a number of the member's status.
number_of() { printf '%s\n' "$status" | sed -n "s/.*\"$1\":\([0-9]\{1,20\}\)[,}].*/\1/p"; }

read_status() {
	status=$(ask_etcd --command-timeout 20s endpoint status -w json 2>/dev/null) || die "etcd does not answer"
	size=$(number_of dbSize) used=$(number_of dbSizeInUse)
	if [ "${size:-0}" -eq 0 ] || [ -z "$used" ]; then die "etcd does not tell the size of its database"; fi
}

# all_healthy dies unless all members are healthy voters. A member that is being defragmented does not answer.
all_healthy() {
	members=$(ask_etcd --command-timeout 20s member list 2>/dev/null) || die "etcd does not list its members"
	others=$(printf '%s\n' "$members" | grep -v '^[0-9a-f]*, started, .*, false$' | sed -n 1p)
	[ -z "$others" ] || die "a member of etcd has not started or is a learner, so nothing is done: $others"
	health=$(ask_etcd --command-timeout 20s endpoint health --cluster -w json 2>/dev/null || true)
	well=$(printf '%s\n' "$health" | grep -o '"health":true' | wc -l)
	count=$(printf '%s\n' "$members" | wc -l)
	[ "$well" -eq "$count" ] ||
		die "$((well)) of $((count)) members of etcd are healthy, so nothing is done: see kubeone etcd members"
}

# hand_over makes another member the leader, if this one is. Otherwise there would be an election.
hand_over() {
	leader=$(number_of leader)
	[ -n "$leader" ] && [ "$leader" = "$(number_of member_id)" ] || return 0
	next=$(printf '%s\n' "$members" | while IFS=, read -r id _ name _; do
		[ "$name" = " $NODE_NAME" ] || printf '%s\n' "$id"
	done | sed -n 1p)
	[ -n "$next" ] || return 0
	ask_etcd move-leader "$next" >/dev/null || die "etcd does not make member $next the leader, so nothing is done"
}

# defragment waits for a snapshot that is being taken.
defragment() {
	private "$SNAPSHOTS"
	lock_file "$SNAPSHOTS/.lock" 900 || die "a snapshot has not ended within 15 minutes"
	beat=$(stat -c %Y /var/lib/kubeone/lock/beat 2>/dev/null || echo 0)
	if [ $(($(date +%s) - beat)) -lt 120 ]; then
		say "nothing is done, because kubeone works on this host"
		return 0
	fi
	etcd=$(etcd_container)
	[ -n "$etcd" ] || die "etcd does not run on this host"
	read_status
	free=$(((size - used) * 100 / size))
	if [ "$free" -lt "$THRESHOLD" ]; then
		say "nothing is done, because $free % of $size bytes are free, which is less than $THRESHOLD %"
		return 0
	fi
	all_healthy
	hand_over
	ask_etcd --command-timeout 600s defrag >/dev/null || die "etcd does not defragment its database"
	before=$size
	read_status
	say "defragmented this host's etcd member: $before bytes before, $size bytes now"
}
