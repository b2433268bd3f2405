# Prints what this host's data of etcd says. Nothing is changed; etcd's image is mounted meanwhile.
# "member ID{JSON}" is a member as the database has it, "removed IDremoved" one that has left, both with what stands in pages that
# are not in use any more. Then "metric REVISION" where the member runs and says how far it has got, else "disk REVISION", which
# is what its database has on the disk.
set -u
BIN=/opt/kubeone/bin
DB=/var/lib/etcd/member/snap/db
# told WORD PATTERN prints what of the database is like that. It has no lines: without a break at each zero one could be all of it.
told() {
	timeout 20 tr '\000' '\n' 2>/dev/null <"$DB" | LC_ALL=C grep -aoE "$2" | LC_ALL=C sort -u | head -n 200 | sed "s/^/$1 /"
}
if [ -r "$DB" ]; then
	told member '[0-9a-f]{1,16}\{"id":[0-9]{1,20},"peerURLs":\[[^]{}[:cntrl:]]{0,500}\][^{}[:cntrl:]]{0,1000}\}'
	told removed '[0-9a-f]{1,16}removed'
fi
revision=$(curl -q -s -m 2 http://127.0.0.1:2381/metrics 2>/dev/null | sed -n 's/^etcd_debugging_mvcc_current_revision //p')
if [ -n "$revision" ]; then
	printf 'metric %s\n' "$revision"
	exit 0
fi
image=$(sed -n 's/^ *image: *//p' /etc/kubernetes/manifests/etcd.yaml 2>/dev/null)
[ -n "$image" ] || image=$("$BIN/ctr" -n k8s.io images ls -q | grep '/etcd:' | sort | sed -n '$p')
[ -n "$image" ] || exit 0
root=/run/kubeone/progress.$$
mkdir -p "$root"
trap '"$BIN/ctr" -n k8s.io images unmount --rm "$root" >/dev/null 2>&1; rmdir "$root" 2>/dev/null' EXIT
"$BIN/ctr" -n k8s.io images mount "$image" "$root" >/dev/null 2>&1 || exit 0
timeout 50 "$root/usr/local/bin/etcdutl" snapshot status "$DB" -w json 2>/dev/null |
	sed -n 's/.*"revision":\([0-9]*\).*/disk \1/p'
