# Prints how far this host's etcd had got: "metric REVISION" where the member runs and says so, else "disk REVISION", which is
# what its database has on the disk. Nothing is changed; etcd's image is mounted meanwhile.
set -u
BIN=/opt/kubeone/bin
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
timeout 50 "$root/usr/local/bin/etcdutl" snapshot status /var/lib/etcd/member/snap/db -w json 2>/dev/null |
	sed -n 's/.*"revision":\([0-9]*\).*/disk \1/p'
