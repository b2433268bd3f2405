# Prints facts about this host, and changes nothing. The same text runs on every host.
#
#	$1  "credentials": also print the cluster's credentials that a control-plane host holds. Anything else: do not.
#	$2  a nonce: for each file with credentials for registries and proxies, print the digest of the nonce and the file.
#	    "": do not.
#
# Output: each fact is a line of a name, a tab and a value; several lines of one name are a list. Output of programs is
# printed unchanged between a line "block", a tab and a name, and a line "block" and a tab; each line is a value of that
# name. The first line is "kubeone-probe 1" and the last "end 1", unless output was lost. A line "access 1" follows
# everything that kubeone needs to ask the cluster's API and etcd, so that it can do this while the rest is still
# collected.
#
# Parsing is done in Go, so that this script stays small. Processes cost most, above all on a small host. So it starts
# one process for all files, units or URLs, and uses builtins where they suffice. Slow parts run in parallel; a pipeline
# appends their output.
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

# block NAME begins a block, and endblock ends it.
block() { printf 'block\t%s\n' "$1"; }
endblock() { printf 'block\t\n'; }

# now sets uptime to the host's uptime in seconds, without a process.
now() {
	uptime=
	[ -r /proc/uptime ] && read -r uptime _ </proc/uptime
}

# part NAME runs the function NAME, and prints the times of its begin and end.
part() {
	now
	set -- "$1" "$uptime"
	"$1"
	now
	put part "$1 $2 $uptime"
}

# line NAME FILE prints the first line of a file, if it is readable.
line() {
	[ -r "$2" ] || return 0
	first=
	IFS= read -r first <"$2" || :
	put "$1" "$first"
}

machine() {
	put uname "$(uname -rm)"
	myself
	line hostname /proc/sys/kernel/hostname
	line machine-id /etc/machine-id
	line boot-id /proc/sys/kernel/random/boot_id
	line memory /proc/meminfo
	swap
	for dir in /var/lib /var /; do
		[ -d "$dir" ] && break
	done
	block disk
	timeout 2 df -Pk "$dir" 2>/dev/null
	endblock
	[ ! -d $state ] || dir=$state
	[ ! -d $state/lock ] || dir=$state/lock
	[ -w "$dir" ] || put unwritable yes
	put filesystem "$(timeout 2 stat -f -c '%f %S %d %c' "$dir" 2>/dev/null)"
	for tool in losetup mount iptables; do
		command -v "$tool" >/dev/null 2>&1 || put missing "$tool"
	done
	for tool in nft curl; do
		command -v "$tool" >/dev/null 2>&1 || put unguarded "$tool"
	done
	firewalls
}

# firewalls prints which firewalls are active, whether each has the rules that kubeone recorded for it, and which ones
# kubeone has switched off.
firewalls() {
	if command -v ufw >/dev/null 2>&1 && grep -qs '^ENABLED=yes' /etc/ufw/ufw.conf; then
		grep -hs ' comment=6b7562656f6e65$' /etc/ufw/user.rules /etc/ufw/user6.rules | firewall ufw
	fi
	if command -v firewall-cmd >/dev/null 2>&1 && timeout 2 systemctl is-active --quiet firewalld 2>/dev/null; then
		cat /etc/firewalld/policies/kubeone-host.xml /etc/firewalld/policies/kubeone-forward.xml 2>/dev/null |
			firewall firewalld
	fi
	for name in ufw firewalld; do
		[ ! -e "$ours/firewall/$name.off" ] || put firewall "$name off"
	done
}

# firewall NAME compares the firewall's rules, from standard input, with the recorded ones.
firewall() {
	if cmp -s - "$ours/firewall/$1"; then put firewall "$1 ours"; else put firewall "$1 other"; fi
}

# myself prints the effective user ID and the number of usable processors, as id and nproc would.
myself() {
	list=
	[ -r /proc/self/status ] && while read -r key value effective _; do
		case $key in
		Uid:) put uid "$effective" ;;
		Cpus_allowed_list:) list=$value && break ;;
		esac
	done </proc/self/status
	if [ -z "$list" ]; then
		put uid "$(id -u)"
		put cpus "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null)"
		return 0
	fi
	cpus=0
	while [ -n "$list" ]; do # 0-3,8,10-11
		range=${list%%,*}
		cpus=$((cpus + ${range#*-} - ${range%-*} + 1))
		case $list in
		*,*) list=${list#*,} ;;
		*) list= ;;
		esac
	done
	put cpus "$cpus"
}

# swap prints the devices in use: the first word of each line of /proc/swaps after the header.
swap() {
	[ -r /proc/swaps ] || return 0
	{
		read -r _ || :
		while read -r device _; do put swap "$device"; done
	} </proc/swaps
}

# before prints what was on the host before kubeone and concerns the kubelet and pods: the version of control groups,
# and CNI configurations. The container runtime uses the first of these by name.
before() {
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		put cgroups 2
	elif [ -d /sys/fs/cgroup ]; then
		put cgroups 1
	fi
	for file in /etc/cni/net.d/*.conf /etc/cni/net.d/*.conflist /etc/cni/net.d/*.json; do
		[ -e "$file" ] && put cni "${file##*/}"
	done
	kubelet_allows
}

# kubelet_allows prints the kubelet's settings for swap and control groups v1: lines "FILE:SETTING" of its configuration
# and its drop-ins, in their order, and flags, which override both.
kubelet_allows() {
	set --
	for file in /var/lib/kubelet/kubeadm-flags.env /etc/systemd/system/kubelet.service.d/*.conf /etc/default/kubelet \
		/etc/sysconfig/kubelet; do
		[ -r "$file" ] && set -- "$@" "$file"
	done
	flags=
	[ $# = 0 ] || flags=$(grep -shv '^[[:space:]]*#' "$@" |
		grep -oE -e "--(config-dir|fail-swap-on|fail-cgroupv1)[= ][^[:space:]\"']+")
	set -- /var/lib/kubelet/config.yaml
	case $flags in
	*--config-dir*)
		dir=${flags##*--config-dir?}
		set -- "$@" "${dir%%[[:space:]]*}"/*.conf
		;;
	esac
	block kubelet-allows
	grep -sHoE '^[^#]*(failSwapOn|failCgroupV1)"?[[:space:]]*:[[:space:]]*(true|false)' "$@"
	printf '%s\n' "$flags"
	endblock
}

# files prints whether files exist, and the content of small ones ("file PATH:LINE").
files() {
	for file in $kubernetes/admin.conf $kubernetes/pki/ca.key /var/lib/etcd/member \
		$ours/marker $state/lock/owner; do
		if [ -e "$file" ]; then put exists "$file"; else put absent "$file"; fi
	done
	# After a power failure, a file may be empty.
	for file in $kubernetes/kubelet.conf "$kubelet_client"; do
		if [ -s "$file" ]; then put exists "$file"; else put absent "$file"; fi
	done
	for file in "$kubernetes"/manifests/*.yaml; do
		[ -e "$file" ] && put manifest "$file"
	done
	# Directories that were moved aside by a reset, a recovery or a quarantine.
	for file in /var/lib/kubeone-old/* /var/lib/etcd/kubeone-old-* /var/lib/etcd/kubeone-lost-* \
		/var/lib/etcd/kubeone-reset-* "$kubernetes"/kubeone-old-* "$kubernetes"/kubeone-reset-*; do
		[ -d "$file" ] && put kept "$file"
	done
	release=/etc/os-release
	[ -r $release ] || release=/usr/lib/os-release
	block file
	grep -sH '' $release $ours/marker $ours/digests $ours/rotation $state/lock/owner $state/step/current $state/upgrading \
		$state/controller-image /dev/null
	endblock
	if [ -d $state/bundles ]; then
		block bundle
		stat -c '%s %n' $state/bundles/*.tar 2>/dev/null
		endblock
	fi
	for file in "$state"/hooks/*; do
		[ -f "$file" ] && put hooks "${file##*/}"
	done
	[ ! -f $ours/files ] || edited
	[ ! -f $ours/marker ] || exposed
	encryption
	[ -e $state/lock/beat ] && put beat "$(stat -c %Y $state/lock/beat 2>/dev/null)"
}

# exposed prints "MODE UID PATH" of files with keys that others than root can read, or that root does not own. For
# registries' credentials, salted prints the mode instead, if there is a nonce.
exposed() {
	set -- "$kubernetes"/admin.conf "$kubernetes"/super-admin.conf "$kubernetes"/kubelet.conf \
		"$kubernetes"/bootstrap-kubelet.conf "$kubernetes"/controller-manager.conf "$kubernetes"/scheduler.conf \
		"$kubernetes"/pki/*.key "$kubernetes"/pki/etcd/*.key "$kubernetes"/encryption/*.yaml "$kubernetes"/kubeone/* \
		/var/lib/kubelet/pki/*.pem /var/lib/kubelet/pki/*.key
	[ -n "$nonce" ] || set -- "$@" /etc/containerd/conf.d/kubeone-registry-*.toml
	stat -c '%F %a %u %n' "$@" 2>/dev/null | sed -nE -e '/^regular (empty )?file [0-7]*00 0 /d' \
		-e "s/^regular (empty )?file /exposed$tab/p" | head -n 32
}

# edited prints the files that differ from what kubeone wrote, as "PATH: FAILED", and those of them whose original
# content is kept undamaged, so that it can be restored.
edited() {
	failed=$(timeout 5 sha256sum -c $ours/files 2>/dev/null | grep -v ': OK$')
	[ -n "$failed" ] || return 0
	block edited
	printf '%s\n' "$failed"
	endblock
	while read -r sum file; do
		case $failed in *"$file: FAILED"*) ;; *) continue ;; esac
		printf '%s  %s\n' "$sum" "$ours/kept/$sum" | timeout 5 sha256sum -c --status - 2>/dev/null || continue
		put restorable "$file"
		case $file in $kubernetes/manifests/*) other "$ours/kept/$sum" "$file" ;; esac
	done <$ours/files
}

# other COPY FILE prints what differs in a static pod from its copy: names of flags and fields, and the mounts and
# images themselves.
other() {
	{
		grep -vxFf "$1" "$2"
		grep -vxFf "$2" "$1"
	} 2>/dev/null |
		sed -nE -e 's/^ *- (--[0-9A-Za-z-]+).*/\1/p' -e t -e 's/^[ -]*((mountPath|path|image): *[^ ]+) *$/\1/p' -e t \
			-e 's/^[ -]*([0-9A-Za-z]+):.*/\1/p' |
		sort -u | head -n 16 | while read -r what; do put pod-edit "$2 $what"; done
}

# encryption prints the API server's encryption configurations: the one in the patch, which the next manifest gets, the
# one in the manifest, and those of running API servers, from their command lines. For kubeone's own files it prints the
# digests, and of each key the name and the digest, in their order.
encryption() {
	file=$kubernetes/manifests/kube-apiserver.yaml
	named=$(sed -n 's/^ *- --encryption-provider-config=//p' "$file" 2>/dev/null)
	patch=$(sed -n 's/^ *value: --encryption-provider-config=//p' \
		"$ours/patches/kube-apiserverencryption+json.yaml" 2>/dev/null)
	[ -n "$named$patch" ] || [ -d $kubernetes/encryption ] || return 0
	put encryption-next "${patch:-none}"
	[ ! -f "$file" ] || put encryption-manifest "${named:-none}"
	network=$(readlink /proc/self/ns/net)
	for process in /proc/[0-9]*; do
		name=
		{ read -r name <"$process/comm"; } 2>/dev/null || continue
		[ "$name" = kube-apiserver ] || continue
		[ "$(readlink "$process/ns/net" 2>/dev/null)" = "$network" ] || continue
		named=$(tr '\0' '\n' <"$process/cmdline" 2>/dev/null | sed -n 's/^--encryption-provider-config=//p')
		put encryption-running "${named:-none}"
	done
	for file in "$kubernetes"/encryption/*.yaml; do
		[ -r "$file" ] || continue
		put encryption-file "$file $(sha256sum <"$file")"
		while read -r one two three; do
			case "$one $two" in
			"- identity:") put encryption-key "$file identity -" ;;
			"- name:") key=$three ;;
			"secret: "*) put encryption-key "$file $key $(printf '%s' "$two" | sha256sum)" ;;
			esac
		done <"$file"
	done
}

# certificates prints public parts only: certificates and public keys of PEM files; server and client certificate of
# kubeconfigs.
certificates() {
	[ -d $kubernetes ] || return 0
	head -n 4000 /dev/null "$kubernetes"/pki/*.crt "$kubernetes"/pki/etcd/*.crt "$kubernetes"/pki/sa.pub \
		"$kubernetes"/pki/next/*.crt "$kubernetes"/pki/next/sa.pub \
		"$kubelet_client" /var/lib/kubelet/pki/kubelet-server-current.pem 2>/dev/null |
		sed -n -e '/^-----BEGIN .*PRIVATE KEY-----/,/^-----END .*PRIVATE KEY-----/d' \
			-e "s/^==> .* <==\$/pem$tab&/p" \
			-e "/^-----BEGIN PUBLIC KEY-----/,/^-----END PUBLIC KEY-----/s/^/pem$tab/p" \
			-e "/^-----BEGIN CERTIFICATE-----/,/^-----END CERTIFICATE-----/s/^/pem$tab/p"
	block yaml
	grep -sHE '^ *((server|client-certificate|client-certificate-data|image): |- --secure-port=)' \
		"$kubernetes"/*.conf "$kubernetes"/manifests/*.yaml /dev/null
	endblock
}

# credentials prints files with secrets. A file ends at the header of the next, even if its last line lacks a line end.
credentials() {
	block secret
	head -n 4000 /dev/null $kubernetes/admin.conf $kubernetes/pki/ca-succession.crt \
		$kubernetes/pki/apiserver-etcd-client.key 2>/dev/null
	printf '\n'
	endblock
}

# salted prints salted digests of files with credentials, and nothing else of them. With the nonce, kubeone compares
# them with its own files.
salted() {
	put salted yes
	for file in /etc/containerd/conf.d/kubeone-registry-*.toml $ours/proxy.env; do
		[ -r "$file" ] || continue
		sum=$({ printf '%s' "$nonce" && cat "$file"; } | sha256sum)
		put salted "${sum%% *} $(stat -c %a "$file") $file"
	done
	# Until containerd has restarted, it has not read the files: print a digest that matches none.
	[ -e $state/containerd.changed ] || return 0
	sum=$(printf '%s' "$nonce" | sha256sum)
	put salted "${sum%% *} 000 $ours/proxy.env"
}

# own_users prints "NAME UID" for each component of the control plane that its manifest runs as another user.
own_users() {
	grep -Hs 'runAsUser: *[0-9]' "$kubernetes"/manifests/*.yaml |
		sed -nE "s,^.*/(kube-)?([a-z-]+)\.yaml:.*runAsUser: *([0-9]+).*,runs-as$tab\2 \3,p"
}

# network prints listening sockets and addresses.
network() {
	# With another bind address, a load balancer may be what answers on the port.
	grep -qs -e '--bind-address=' $kubernetes/manifests/kube-apiserver.yaml || put api-port "$api"
	if command -v ss >/dev/null 2>&1; then
		# The names of processes are expensive, and matter only before the host has joined.
		whose=p
		[ -e $kubernetes/kubelet.conf ] && whose=
		ss -ltne$whose 2>/dev/null | sed -nE "s/^(.*:($api|2379|2380|2381|10248|10250|10257|10259) )/listen$tab\\1/p"
	else
		block socket
		grep -sh ' 0A ' /proc/net/tcp /proc/net/tcp6
		endblock
	fi
	if command -v ip >/dev/null 2>&1; then
		block address
		ip -o addr show scope global 2>/dev/null
		endblock
	else
		put addresses "$(hostname -I 2>/dev/null)"
	fi
}

# programs prints kubeone's links: they point into directories named after versions, so no program must run.
programs() {
	[ -d /opt/kubeone/bin ] || return 0
	for file in /opt/kubeone/bin/*; do
		[ -x "$file" ] || put broken "$file"
	done
	block link
	# shellcheck disable=SC2012 # the names are ours, and this is one process for all of them
	ls -l /opt/kubeone/bin
	endblock
}

# version NAME PROGRAM ARGUMENT... prints the version of a program that is not kubeone's. PROGRAM is its path; "" means
# NAME in PATH.
version() {
	name=$1
	program=$2
	shift 2
	if [ -z "$program" ]; then
		[ -e "/opt/kubeone/bin/$name" ] && return 0
		command -v "$name" >/dev/null 2>&1 || return 0
		program=$(command -v "$name")
	fi
	case $program in /opt/kubeone/*) return 0 ;; esac
	[ -x "$program" ] || return 0
	put version "$name $(timeout 2 "$program" "$@" 2>/dev/null | head -n 1)" &
}

# units prints systemd's units, and versions of foreign programs. The path in a unit's ExecStart has priority over PATH.
units() {
	properties=Id,LoadState,ActiveState,SubState,UnitFileState,ActiveEnterTimestampMonotonic,ExecStart
	shown=$(timeout 8 systemctl show -p "$properties" containerd.service kubelet.service kubeone-step.service \
		kubeone-etcd-defrag.timer kubeone-unattended-upgrades.timer \
		crio.service k3s.service k3s-agent.service rke2-server.service rke2-agent.service \
		k0scontroller.service k0sworker.service snap.microk8s.daemon-kubelite.service snap.k8s.kubelet.service \
		2>/dev/null)
	kubelet=
	containerd=
	for word in $shown; do
		case $word in
		path=*/kubelet) kubelet=${word#path=} ;;
		path=*/containerd) containerd=${word#path=} ;;
		esac
	done
	version kubelet "$kubelet" --version
	version containerd "$containerd" --version
	version kubeadm "" version -o short
	version kubectl "" version --client
	version runc "" --version
	version crictl "" --version
}

# statuses URL... prints for each URL: the URL, its HTTP status, and the seconds until the connection was made, 0 for
# none. The status is 000 without an answer, and - if there is no program to ask with.
statuses() {
	if ! command -v curl >/dev/null 2>&1; then
		for url; do
			printf '%s %s\n' "$url" "$(status_by_wget "$url")" &
		done
		wait
		return 0
	fi
	urls=$*
	for url; do
		set -- "$@" -o /dev/null "$url"
		shift
	done
	says='%{http_code} %{time_connect}'
	curl -q -sk -m 2 --parallel -w "%{url_effective} $says\n" "$@" 2>/dev/null # some print progress in spite of -s
	[ $? = 2 ] || return 0
	# Exit status 2: this curl is too old for --parallel.
	for url in $urls; do
		printf '%s %s\n' "$url" "$(curl -q -sk -m 2 -o /dev/null -w "$says" "$url")" &
	done
	wait
}

# status_by_wget URL prints what statuses does, without the URL. A connection counts as 1 second.
status_by_wget() {
	command -v wget >/dev/null 2>&1 || { echo - 0 && return; }
	timeout 2 wget -q -O /dev/null --no-check-certificate "$1" 2>/dev/null
	case $? in
	0) echo 200 1 ;;
	4) echo 000 0 ;;
	6) echo 401 1 ;;
	8) echo 500 1 ;;
	124) echo 000 1 ;;
	*) echo - 0 ;;
	esac
}

# health URL STATUS prints a component's health as the fact "health".
health() {
	case $1 in
	*:10248/*) put health "kubelet $2" ;;
	*:10257/*) put health "controller-manager $2" ;;
	*:10259/*) put health "scheduler $2" ;;
	*:2381/readyz)
		if [ "$2" = 404 ]; then
			# shellcheck disable=SC2046 # a URL, a status and seconds
			health $(statuses http://127.0.0.1:2381/health)
		else
			etcd_health "$2"
		fi
		;;
	*:2381/health) etcd_health "$2" ;;
	*) put health "apiserver $2" ;;
	esac
}

# etcd_health STATUS prints etcd's health.
etcd_health() {
	put health "etcd $1"
	[ "$1" = 200 ] || etcd_lost
}

# etcd_lost prints what etcd's newest log says about its data, if that explains why it does not run. Without a
# write-ahead log the data is lost, even if etcd has created an empty database since.
etcd_lost() {
	if [ -d /var/lib/etcd/member ] && [ ! -e /var/lib/etcd/member/wal ]; then
		put etcd-lost "no write-ahead log in /var/lib/etcd/member"
		return 0
	fi
	# shellcheck disable=SC2012 # the names are the kubelet's
	log=$(ls -t /var/log/pods/kube-system_etcd-*/etcd/*.log 2>/dev/null | head -n 1)
	lost_data='tocommit\([0-9]+\) is out of range|permanently removed from the cluster|crc mismatch|invalid database'
	lost_data="$lost_data|checksum error|failed to recover v3 backend from snapshot|has already been bootstrapped"
	lost_data="$lost_data|failed to find database snapshot file"
	[ -n "$log" ] || return 0
	said=$(tail -n 80 "$log" 2>/dev/null |
		grep -oE "$lost_data" |
		tail -n 1)
	[ -z "$said" ] || put etcd-lost "$said"
}

# late URL STATUS SECONDS... prints the URLs whose server accepted the connection, but did not answer, or answered 5xx.
late() {
	while [ $# -ge 3 ]; do
		case $2:$3 in 000:*[1-9]* | 5??:*) echo "$1" ;; esac
		shift 3
	done
}

# well URL STATUS SECONDS... prints the other ones, with status and seconds.
well() {
	while [ $# -ge 3 ]; do
		case $2:$3 in 000:*[1-9]* | 5??:*) ;; *) echo "$1 $2 $3" ;; esac
		shift 3
	done
}

# healths asks only components that are installed here. It asks late ones up to three times: a busy host may miss one
# answer, and a component that has just started is ready a moment later. While etcd is late, it does not ask the others
# again.
# shellcheck disable=SC2046,SC2086 # URLs, statuses and seconds
healths() {
	set --
	[ -e $kubernetes/kubelet.conf ] && set -- "$@" http://127.0.0.1:10248/healthz
	[ -e $kubernetes/manifests/kube-apiserver.yaml ] && set -- "$@" "https://127.0.0.1:$api/readyz"
	[ -e $kubernetes/manifests/kube-controller-manager.yaml ] && set -- "$@" https://127.0.0.1:10257/healthz
	[ -e $kubernetes/manifests/kube-scheduler.yaml ] && set -- "$@" https://127.0.0.1:10259/healthz
	[ -e $kubernetes/manifests/etcd.yaml ] && set -- "$@" http://127.0.0.1:2381/readyz
	[ $# -gt 0 ] || return 0
	said=$(statuses "$@")
	for _ in 2 3; do
		bad=$(late $said)
		[ -n "$bad" ] || break
		sleep 1
		case $bad in *:2381/*) [ -z "$(late $(statuses http://127.0.0.1:2381/readyz))" ] || break ;; esac
		said="$(well $said) $(statuses $bad)"
	done
	set -- $said
	while [ $# -ge 3 ]; do
		health "$1" "$2"
		shift 3
	done
}

# asked runs what has to ask other processes, in parallel. Until all have ended, each line is written by itself, so that
# no two lines mix.
asked() {
	set -f
	part healths &
	part units
	wait
	block unit
	printf '%s\n' "$shown"
	endblock
}

facts() {
	machine
	before
	files
	own_users
	network
	programs
	[ -z "$nonce" ] || salted
}

nonce=${2:-}
# api is the port of this host's API server.
api=$(grep -s -e '--secure-port=' $kubernetes/manifests/kube-apiserver.yaml)
api=${api##*--secure-port=}
api=${api%%[!0-9]*}
api=${api:-6443}
put kubeone-probe 1
asked | {
	part certificates
	[ "${1:-}" = credentials ] && part credentials
	put access 1
	put clock "$(date +%s.%N)"
	part facts
	cat
} && put end 1
