# Prints the facts about one host, and changes nothing on it. The same text runs on every host.
#
#	$1  "credentials": also print the cluster's credentials that a control-plane host holds. Anything else: do not.
#
# Output: lines of a name, a tab and a value; several lines of one name are a list. "kubeone-probe 1" comes first and
# "end 1" last, or else something was lost. Parsing is in Go, so that this stays small: what costs a process here is
# done for all files, units or sockets at once, and the slow parts run beside the rest.
#
# Each part below writes in its own process; a pipeline puts them one after the other while all of them run.
set -u
LC_ALL=C
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin:/opt/kubeone/bin
export LC_ALL PATH
unset http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY

tab=$(printf '\t')
kubernetes=/etc/kubernetes
ours=/etc/kubeone
state=/var/lib/kubeone
kubelet_client=/var/lib/kubelet/pki/kubelet-client-current.pem

# put NAME VALUE prints one fact.
put() { printf '%s\t%s\n' "$1" "$2"; }

# each NAME prints every line of the standard input as a fact.
each() { sed "s/^/$1$tab/"; }

# line NAME FILE prints the first line of a file, if it can be read.
line() {
	[ -r "$2" ] || return 0
	first=
	IFS= read -r first <"$2" || :
	put "$1" "$first"
}

machine() {
	put uid "$(id -u)"
	put uname "$(uname -rm)"
	put cpus "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null)"
	line hostname /proc/sys/kernel/hostname
	line machine-id /etc/machine-id
	line boot-id /proc/sys/kernel/random/boot_id
	line memory /proc/meminfo
	swap
	for dir in /var/lib /var /; do
		[ -d "$dir" ] && break
	done
	timeout 2 df -Pk "$dir" 2>/dev/null | each disk
	for tool in losetup mount cp; do
		command -v "$tool" >/dev/null 2>&1 || put missing "$tool"
	done
}

# The second line of /proc/swaps is the first swap in use.
swap() {
	[ -r /proc/swaps ] || return 0
	device=
	{
		read -r _ || :
		read -r device _ || :
	} </proc/swaps
	put swap "$device"
}

# Files are found out about by name ("exists", "absent") and small ones are printed whole ("file PATH:LINE").
files() {
	for file in $kubernetes/admin.conf $kubernetes/pki/ca.key /var/lib/etcd/member \
		$ours/marker $state/lock/owner; do
		if [ -e "$file" ]; then put exists "$file"; else put absent "$file"; fi
	done
	# After a power cut a file may be there and have nothing in it.
	for file in $kubernetes/kubelet.conf "$kubelet_client"; do
		if [ -s "$file" ]; then put exists "$file"; else put absent "$file"; fi
	done
	for file in "$kubernetes"/manifests/*.yaml; do
		[ -e "$file" ] && put manifest "$file"
	done
	release=/etc/os-release
	[ -r $release ] || release=/usr/lib/os-release
	grep -sH '' $release $ours/marker $ours/digests $state/lock/owner $state/step/current $state/turn /dev/null | each file
	[ -e $state/lock/beat ] && put beat "$(stat -c %Y $state/lock/beat 2>/dev/null)"
}

# Public parts only: of PEM files the certificates, of kubeconfigs the server and the client certificate.
certificates() {
	[ -d $kubernetes ] || return 0
	head -n 4000 /dev/null "$kubernetes"/pki/*.crt "$kubernetes"/pki/etcd/*.crt \
		"$kubelet_client" /var/lib/kubelet/pki/kubelet-server-current.pem 2>/dev/null |
		sed -n -e '/^-----BEGIN .*PRIVATE KEY-----/,/^-----END .*PRIVATE KEY-----/d' \
			-e "s/^==> .* <==\$/pem$tab&/p" \
			-e "/^-----BEGIN CERTIFICATE-----/,/^-----END CERTIFICATE-----/s/^/pem$tab/p"
	grep -sHE '^ *(server|client-certificate|client-certificate-data): ' "$kubernetes"/*.conf /dev/null | each kubeconfig
	grep -sHE '^ *(image: |- --secure-port=)' "$kubernetes"/manifests/*.yaml /dev/null | each pod
}

credentials() {
	for file in $kubernetes/admin.conf $kubernetes/pki/apiserver-etcd-client.key; do
		[ -r "$file" ] && put secret "$file $(base64 <"$file" | tr -d '\n')"
	done
}

network() {
	if command -v ss >/dev/null 2>&1; then
		ss -ltnp 2>/dev/null | grep -E ':(6443|2379|2380|10250|10257|10259) ' | each listen
	else
		grep -sh ' 0A ' /proc/net/tcp /proc/net/tcp6 | each socket
	fi
	if command -v ip >/dev/null 2>&1; then
		ip -o addr show scope global 2>/dev/null | each address
	else
		put addresses "$(hostname -I 2>/dev/null)"
	fi
}

# Our programs are links into directories named after their versions, so the version is known without running them.
programs() {
	[ -d /opt/kubeone/bin ] || return 0
	for file in /opt/kubeone/bin/*; do
		[ -x "$file" ] || put broken "$file"
	done
	# shellcheck disable=SC2012 # the names are ours, and this is one process for all of them
	ls -l /opt/kubeone/bin | each link
}

# version NAME PROGRAM ARGUMENT... asks a program that is not ours for its version.
version() {
	name=$1
	shift
	case $1 in /opt/kubeone/*) return 0 ;; esac
	[ -x "$1" ] && put version "$name $(timeout 2 "$@" 2>/dev/null | head -n 1)"
}

# other NAME prints where a program is that somebody else installed.
other() { [ -e "/opt/kubeone/bin/$1" ] || command -v "$1"; }

# Units, and the versions of programs that are not ours; the unit's own ExecStart goes before PATH.
units() {
	set -f
	shown=$(timeout 4 systemctl show -p Id,LoadState,ActiveState,SubState,UnitFileState,ActiveEnterTimestampMonotonic,ExecStart \
		containerd.service kubelet.service kubeone-step.service 2>/dev/null)
	kubelet=
	containerd=
	for word in $shown; do
		case $word in
		path=*/kubelet) kubelet=${word#path=} ;;
		path=*/containerd) containerd=${word#path=} ;;
		esac
	done
	printf '%s\n' "$shown" | each unit
	version kubelet "${kubelet:-$(other kubelet)}" --version &
	version containerd "${containerd:-$(other containerd)}" --version &
	version kubeadm "$(other kubeadm)" version -o short &
	version kubectl "$(other kubectl)" version --client &
	version runc "$(other runc)" --version &
	version crictl "$(other crictl)" --version &
	wait
}

images() {
	[ -S /run/containerd/containerd.sock ] || return 0
	command -v ctr >/dev/null 2>&1 || return 0
	timeout 4 ctr -n k8s.io images ls -q 2>/dev/null | each image
}

# status URL prints the HTTP status: 000 when nobody answers, nothing when it cannot be asked.
status() {
	if command -v curl >/dev/null 2>&1; then
		curl -q -sk -m 2 -o /dev/null -w '%{http_code}' "$1"
	elif command -v wget >/dev/null 2>&1; then
		timeout 2 wget -q -O /dev/null --no-check-certificate "$1" 2>/dev/null
		case $? in
		0) echo 200 ;;
		4 | 124) echo 000 ;;
		6) echo 401 ;;
		8) echo 500 ;;
		esac
	fi
}

# health NAME URL prints what a component of this host says about itself.
health() { put health "$1 $(status "$2")"; }

etcd_health() {
	code=$(status http://127.0.0.1:2381/readyz)
	[ "$code" = 404 ] && code=$(status http://127.0.0.1:2381/health)
	put health "etcd $code"
	[ "$code" = 200 ] || etcd_lost
}

# What etcd said of its data in its newest log, if that is why it does not run. Without its write-ahead log it has none, even
# where it has made an empty database since.
etcd_lost() {
	if [ -d /var/lib/etcd/member ] && [ ! -e /var/lib/etcd/member/wal ]; then
		put etcd-lost "no write-ahead log in /var/lib/etcd/member"
		return 0
	fi
	# shellcheck disable=SC2012 # the names are the kubelet's
	log=$(ls -t /var/log/pods/kube-system_etcd-*/etcd/*.log 2>/dev/null | head -n 1)
	[ -n "$log" ] || return 0
	tail -n 80 "$log" 2>/dev/null | grep -oE 'tocommit\([0-9]+\) is out of range|permanently removed from the cluster|crc mismatch|invalid database|checksum error|failed to recover v3 backend from snapshot|has already been bootstrapped|failed to find database snapshot file' |
		tail -n 1 | each etcd-lost
}

# Only what is meant to run here is asked.
healths() {
	port=$(grep -s -e '--secure-port=' $kubernetes/manifests/kube-apiserver.yaml)
	port=${port##*--secure-port=}
	port=${port%%[!0-9]*}
	[ -e $kubernetes/kubelet.conf ] && health kubelet http://127.0.0.1:10248/healthz &
	[ -e $kubernetes/manifests/kube-apiserver.yaml ] && health apiserver "https://127.0.0.1:${port:-6443}/readyz" &
	[ -e $kubernetes/manifests/kube-controller-manager.yaml ] && health controller-manager https://127.0.0.1:10257/healthz &
	[ -e $kubernetes/manifests/kube-scheduler.yaml ] && health scheduler https://127.0.0.1:10259/healthz &
	[ -e $kubernetes/manifests/etcd.yaml ] && etcd_health &
	wait
}

facts() {
	machine
	files
	certificates
	network
	programs
	[ "${1:-}" = credentials ] && credentials
	return 0
}

put kubeone-probe 1
put clock "$(date +%s.%N)"
units | { healths | { images | { facts "${1:-}" && cat; } && cat; } && cat; } &&
	put clock "$(date +%s.%N)" && put end 1
