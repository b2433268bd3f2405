# Prints what this host's data of etcd says. Nothing is changed; etcd's image is mounted meanwhile.
# "metric REVISION" where the member runs and says how far it has got, else "disk REVISION", which is what its database
# has on the disk. With MEMBERS=yes also "member ID{JSON}" for a member as the database has it, and "removed IDremoved"
# for one that has left, both with what stands in pages that are not in use any more; then "searched", where these are
# all.
set -u
BIN=/opt/kubeone/bin
DB=/var/lib/etcd/member/snap/db
PATTERN='[0-9a-f]{1,16}\{"id":[0-9]{1,20},"peerURLs":\[[^]{}[:cntrl:]]{0,500}\][^{}[:cntrl:]]{0,1000}\}'
# found prints what of the database is like a member. It has no lines: without a break at each zero one could be all of
# it.
found() {
	{ timeout 40 tr '\000' '\n' <"$DB" 2>/dev/null && echo searched; } |
		LC_ALL=C grep -aoE "$PATTERN|[0-9a-f]{1,16}removed|^searched\$" | LC_ALL=C sort -u
}
members() {
	all=$(found | head -n 500)
	if [ "$(printf '%s\n' "$all" | wc -l)" -ge 500 ]; then # there may be more
		all=$(printf '%s\n' "$all" | grep -vx searched)
	fi
	printf '%s\n' "$all" | sed -n -e 's/^[0-9a-f]*{/member &/p' -e 's/^[0-9a-f]*removed$/removed &/p' -e '/^searched$/p'
}
how_far() {
	revision=$(curl -q -s -m 2 http://127.0.0.1:2381/metrics 2>/dev/null |
		sed -n 's/^etcd_debugging_mvcc_current_revision //p')
	if [ -n "$revision" ]; then
		printf 'metric %s\n' "$revision"
		return
	fi
	image=$(sed -n 's/^ *image: *//p' /etc/kubernetes/manifests/etcd.yaml 2>/dev/null)
	[ -n "$image" ] || image=$("$BIN/ctr" -n k8s.io images ls -q | grep '/etcd:' | sort | sed -n '$p')
	[ -n "$image" ] || return
	root=/run/kubeone/progress.$$
	mkdir -p "$root"
	trap '"$BIN/ctr" -n k8s.io images unmount --rm "$root" >/dev/null 2>&1; rmdir "$root" 2>/dev/null' EXIT
	"$BIN/ctr" -n k8s.io images mount "$image" "$root" >/dev/null 2>&1 || return
	timeout 50 "$root/usr/local/bin/etcdutl" snapshot status "$DB" -w json 2>/dev/null |
		sed -n 's/.*"revision":\([0-9]*\).*/disk \1/p'
}
how_far
[ "$MEMBERS" = no ] || [ ! -r "$DB" ] || members
