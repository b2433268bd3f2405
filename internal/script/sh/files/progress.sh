# Prints how far this host's etcd data has got. It changes nothing, but mounts etcd's image temporarily.
#
# Output: "metric REVISION" if the member runs and reports it, otherwise "disk REVISION" from its database, or neither.
# With MEMBERS=yes also "member ID{JSON}" for each member in the database, and "removed IDremoved" for each that has
# left; both may come from pages that are no longer in use. Then "searched", if these are all.
#
# Variable, set by Progress in internal/script/progress.go: MEMBERS yes|no.
set -u
BIN=/opt/kubeone/bin
DB=/var/lib/etcd/member/snap/db
PATTERN='[0-9a-f]{1,16}\{"id":[0-9]{1,20},"peerURLs":\[[^]{}[:cntrl:]]{0,500}\][^{}[:cntrl:]]{0,1000}\}'
# found prints the parts of the database that look like members. The database has no lines; splitting it at zero bytes
# keeps grep from reading all of it as one.
found() {
	{ timeout 40 tr '\000' '\n' <"$DB" 2>/dev/null && echo searched; } |
		LC_ALL=C grep -aoE "$PATTERN|[0-9a-f]{1,16}removed|^searched\$" | LC_ALL=C sort -u
}
# members prints at most 500 of these.
members() {
	all=$(found | head -n 500)
	if [ "$(printf '%s\n' "$all" | wc -l)" -ge 500 ]; then # the output was cut
		all=$(printf '%s\n' "$all" | grep -vx searched)
	fi
	printf '%s\n' "$all" | sed -n -e 's/^[0-9a-f]*{/member &/p' -e 's/^[0-9a-f]*removed$/removed &/p' -e '/^searched$/p'
}
# how_far prints the line with the revision.
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
