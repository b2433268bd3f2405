# What all stages share. Everything host-specific is in the variables and functions above this line.

say() { printf '%s\n' "$*"; }

die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# wait_for SECONDS WHAT COMMAND... polls until the command succeeds, and gives up after that many seconds.
wait_for() {
	limit=$1 what=$2
	shift 2
	deadline=$(($(date +%s) + limit))
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$deadline" ] || die "gave up after ${limit} s waiting for ${what}$(last_words)"
		sleep "$POLL"
	done
}

# wait_for_pods PODS SECONDS WHAT COMMAND... is wait_for, and tells what these static pods have printed last.
wait_for_pods() {
	pods=$1
	shift
	wait_for "$@"
	pods=
}

# last_words prints the last line of each of the static pods $pods.
last_words() {
	for pod in ${pods:-}; do
		log=
		for file in /var/log/pods/kube-system_"$pod"-*/"$pod"/*.log; do
			# One that has just started again has said nothing yet.
			if [ -s "$file" ] && { [ -z "$log" ] || [ -n "$(find "$file" -newer "$log")" ]; }; then log=$file; fi
		done
		[ -z "$log" ] || printf '; %s says: %s' "$pod" "$(sed -n '$s/^[^ ]* std[^ ]* [FP] //; $s/^\(.\{400\}\).*/\1/; $p' "$log")"
	done
}

# The file that says that containerd has not started anew since its configuration changed.
RUNTIME_DIRTY=/var/lib/kubeone/containerd.changed

# changed notes that something is another than it was: in CHANGED, and before it becomes so in the file DIRTY, if that is
# set, for whoever comes after a run that was killed.
changed() {
	CHANGED=yes
	[ -n "${DIRTY:-}" ] || return 0
	mkdir -p "${DIRTY%/*}"
	: >"$DIRTY"
}

# put PATH MODE FUNCTION gives the file the function's output as content, in one rename, so that a power cut leaves the old
# content or the new one. CHANGED becomes yes when the content was another.
put() {
	mkdir -p "${1%/*}"
	tmp=$(mktemp "${1%/*}/.kubeone.XXXXXX")
	"$3" >"$tmp"
	if cmp -s "$tmp" "$1"; then
		rm -f "$tmp"
		chmod "$2" "$1"
		return 0
	fi
	chmod "$2" "$tmp"
	on_disk "$tmp"
	changed
	mv -f "$tmp" "$1"
}

# link TARGET PATH points PATH at TARGET in one rename.
link() {
	[ "$(readlink "$2" 2>/dev/null)" = "$1" ] && return 0
	rm -f "$2.kubeone"
	ln -s "$1" "$2.kubeone"
	mv -fT "$2.kubeone" "$2"
	CHANGED=yes
}

# listens PORT[/PATH] fails when nobody listens on that port. Hosts wait long for that, and most of what asks properly is expensive.
listens() {
	grep -qs ":$(printf '%04X' "${1%%/*}") [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6
	[ $? != 1 ] # otherwise somebody does, or it cannot be seen here
}

# answers URL succeeds when the URL answers with a success within two seconds. Certificates are not looked at: it asks
# this host's own components.
answers() {
	listens "${1#*://*:}" || return 1
	if have curl; then
		curl -fsk --noproxy "*" --max-time 2 "$1"
	elif have wget; then
		wget -q -T 2 -t 1 -O - --no-proxy --no-check-certificate "$1"
	else
		path=${1#*://}
		"$BIN/kubectl" --kubeconfig /dev/null --request-timeout 2s --insecure-skip-tls-verify --server "${1%"/${path#*/}"}" get --raw "/${path#*/}"
	fi
}

readyz() { answers "https://127.0.0.1:6443/readyz"; }

stuck_polls=25

# await_api_server SECONDS waits for this host's API server. One that looks over the Services' ports before it can answer itself,
# which happens on a busy machine, looks again only after three minutes, and gives up after one. It is ended before that: the
# kubelet starts it anew.
await_api_server() {
	stuck=0 anew=no
	wait_for_pods kube-apiserver "$1" "this host's API server" api_server_up
	[ "$anew" = no ] || say "this host's API server had not come to its end of looking over the Services' ports, and was started anew"
}

# api_server_up succeeds when the API server is ready, and ends it, once, when it was seen $stuck_polls times in a row to wait for
# that look alone.
api_server_up() {
	! readyz || return 0
	if answers "https://127.0.0.1:6443/readyz?exclude=poststarthook/start-service-ip-repair-controllers"; then
		stuck=$((stuck + 1))
	else
		stuck=0
	fi
	[ "$stuck" -ge "$stuck_polls" ] && [ "$anew" = no ] || return 1
	anew=yes
	end_pod kube-apiserver SIGKILL
	return 1
}

kubelet_healthy() {
	if have curl || have wget || [ -x "$BIN/kubectl" ]; then
		answers http://127.0.0.1:10248/healthz
	else
		systemctl is-active --quiet kubelet
	fi
}

controllers_healthy() { answers https://127.0.0.1:10257/healthz && answers https://127.0.0.1:10259/healthz; }

# etcd_votes succeeds when this host's member answers, is no learner, and hears from a quorum. It asks twice: one that has just
# started does not know yet that it is a learner, and has learnt it when it has heard from a quorum for the first answer.
etcd_votes() {
	[ -f /etc/kubernetes/manifests/etcd.yaml ] && answers http://127.0.0.1:2381/readyz && answers http://127.0.0.1:2381/readyz
}

# with_proxy COMMAND... runs a command that fetches something from outside. What the proxy wants to know of its user is in the
# command's environment only.
with_proxy() {
	(
		HTTP_PROXY=$HTTP_PROXY_URL HTTPS_PROXY=$HTTPS_PROXY_URL
		# shellcheck disable=SC1090 # two assignments
		[ "$PROXY_AUTH" = no ] || [ ! -f "$PROXY_FILE" ] || . "$PROXY_FILE"
		http_proxy=$HTTP_PROXY https_proxy=$HTTPS_PROXY no_proxy=$NO_PROXY_LIST "$@"
	)
}

marker_text() {
	printf 'cluster=%s\nrole=%s\nrun=%s\ncomplete=%s\n' "$CLUSTER" "$ROLE" "${KUBEONE_RUN:-by-hand}" "$COMPLETE"
	[ "$EPOCH" = 0 ] || printf 'epoch=%s\n' "$EPOCH"
	identity_text
}

# identity_text is who this host is: the ID, whether it was only derived, the name of its Node, and of its Machine if it
# has one.
identity_text() {
	printf 'id=%s\nid-derived=%s\nnode=%s\n' "$HOST_ID" "$ID_DERIVED" "$NODE_NAME"
	[ -z "$MACHINE" ] || printf 'machine=%s\n' "$MACHINE"
}

# unclaimed dies on a host that a Machine has, unless it is this one's, and on one of the manifest's for a Machine.
unclaimed() {
	[ -f "$MARKER" ] || return 0
	machine=$(sed -n 's/^machine=//p' "$MARKER")
	[ -n "$machine$MACHINE" ] || return 0
	[ "$(sed -n 's/^id=//p' "$MARKER")" = "$HOST_ID" ] || die "this host belongs to ${machine:+Machine }${machine:-the manifest}: nothing was changed"
}

# on_disk PATH... returns when the files below these paths will outlive a power cut.
on_disk() { find "$@" \( -type f -o -type d \) -exec sync {} + 2>/dev/null || true; }

# file_modes gives what components read the modes of the baseline, or those that it has without, where somebody has said which: kubeadm
# keeps the mode of a file that is there. The rest of what is secret has its mode from the beginning.
file_modes() {
	[ -n "$HARDENING" ] || return 0
	for file in /var/lib/kubelet/config.yaml "/etc/cni/net.d/${CNI_CONFIG:-none}"; do
		[ ! -f "$file" ] || chmod "$FILE_MODE" "$file"
	done
	[ "$HARDENING" = baseline ] || return 0
	for file in /etc/kubernetes/*.conf /etc/kubernetes/manifests/*.yaml /etc/kubernetes/pki/*.key /etc/kubernetes/pki/etcd/*.key; do
		[ ! -f "$file" ] || chmod 0600 "$file"
	done
	[ "$ROLE" != control-plane ] || [ ! -d /var/lib/etcd ] || chmod 0700 /var/lib/etcd
}

# keep has what a finished host relies on survive a power cut.
keep() { on_disk /etc/kubernetes /etc/kubeone /var/lib/kubelet/config.yaml /var/lib/kubelet/pki; }

# mark yes|no says whose host this is, and whether it has finished joining. A finished host stays
# finished, and one that a recovery fenced stays so until it has.
mark() {
	unclaimed
	if [ -f "$MARKER" ]; then
		owner=$(sed -n 's/^cluster=//p' "$MARKER")
		[ "$owner" = "$CLUSTER" ] || die "this host belongs to cluster ${owner}: reset it there first"
		joined=$(sed -n 's/^role=//p' "$MARKER")
		[ "${joined:-$ROLE}" = "$ROLE" ] || ! grep -q '^complete=yes$' "$MARKER" || die "this host has joined as $joined since the plan was made: apply again"
		[ "$1" = yes ] || ! grep -q -e '^complete=yes$' -e '^fenced=' "$MARKER" || return 0
	fi
	[ "$1" = no ] || finish
	COMPLETE=$1
	put "$MARKER" 0644 marker_text
}

# finish has a host that is about to be told finished be so, guards and all: nobody looks for them on a finished one.
finish() {
	if [ "$ROLE" = control-plane ]; then
		guard_etcd
		guard_on
	fi
	file_modes
	keep
}

digests_text() {
	if [ -f "$DIGESTS" ]; then
		while read -r name sum; do
			case " $REPLACED " in *" $name "*) ;; *) printf '%s %s\n' "$name" "$sum" ;; esac
		done <"$DIGESTS"
	fi
	for pair in $NEW_DIGESTS; do
		printf '%s %s\n' "${pair%%=*}" "${pair#*=}"
	done
}

# record NAME=SHA256... notes which configuration this host has now, and what the files are that were made of it.
record() {
	NEW_DIGESTS=$*
	REPLACED=
	for pair in "$@"; do REPLACED="$REPLACED ${pair%%=*}"; done
	file_modes # a copy that is kept has the mode that its file is restored with
	# shellcheck disable=SC2046 # a list
	note_files $(for name in $REPLACED; do files_of "$name"; done)
	put "$DIGESTS" 0644 digests_text
}

# files_of NAME prints the files that are made of a configuration. Their paths have no spaces.
files_of() {
	case $1 in
	containerd)
		for file in /etc/containerd/config.toml /etc/containerd/certs.d/*/hosts.toml /etc/systemd/system/containerd.service \
			/etc/systemd/system/containerd.service.d/kubeone-proxy.conf; do printf '%s\n' "$file"; done
		;;
	kernel) printf '%s\n' /etc/modules-load.d/kubeone.conf /etc/sysctl.d/99-zz-kubeone.conf ;;
	kubelet) printf '%s\n' /var/lib/kubelet/config.yaml /etc/systemd/system/kubelet.service ;;
	components)
		for name in $STATIC_PODS; do printf '/etc/kubernetes/manifests/%s.yaml\n' "$name"; done
		component_paths
		;;
	esac
}

# note_files FILE... notes what the files are now, so that whoever looks later sees whether somebody has changed them, and keeps
# them, so that stage restore-files can bring them back. What is noted is kept before; what is not any more goes afterwards.
note_files() {
	OLD=$* NEW=$*
	[ -n "$OLD" ] || return 0
	# shellcheck disable=SC2086 # a list
	keep_files $NEW
	put "$FILES" 0644 files_text
	for copy in "$KEPT"/*; do
		grep -qs "^${copy##*/} " "$FILES" || rm -f "$copy"
	done
}

# keep_files FILE... copies files to where only root reads them, each to the name of its digest.
keep_files() {
	(
		umask 077
		mkdir -p "$KEPT"
		for file in "$@"; do
			[ -f "$file" ] || continue
			cp -p "$file" "$KEPT/new"
			sum=$(sha256sum <"$KEPT/new")
			mv -f "$KEPT/new" "$KEPT/${sum%% *}"
		done
		on_disk "$KEPT"
	)
}

# forget_files FILE... ends what is noted of files that are about to be written: a step that ends in between has claimed
# nothing.
forget_files() {
	OLD=$* NEW=
	[ ! -f "$FILES" ] || put "$FILES" 0644 files_text
}

# files_text is the list without the files OLD and with the files NEW. A registry that is not wanted any more has no file:
# with containerd's configuration all of theirs are noted.
files_text() {
	[ ! -f "$FILES" ] || while read -r sum file; do
		case " $OLD " in
		*" $file "*) ;;
		*" /etc/containerd/config.toml "*) case $file in /etc/containerd/certs.d/*) ;; *) printf '%s  %s\n' "$sum" "$file" ;; esac ;;
		*) printf '%s  %s\n' "$sum" "$file" ;;
		esac
	done <"$FILES"
	for file in $NEW; do
		[ ! -f "$file" ] || sha256sum "$file"
	done
}

STATIC_PODS="etcd kube-apiserver kube-controller-manager kube-scheduler"

# secret NAME prints the path of a file that the operator's machine put there for this step.
secret() {
	[ -f "$SECRETS/$1" ] || die "$SECRETS/$1 is missing: it is put there before the step and removed after it"
	printf '%s\n' "$SECRETS/$1"
}

# with_secrets FUNCTION prints what the function prints, with the token filled in.
with_secrets() {
	token=$(cat "$(secret token)")
	"$1" | while IFS= read -r line; do
		case $line in
		*@TOKEN@*) line=${line%%@TOKEN@*}$token${line#*@TOKEN@} ;;
		esac
		printf '%s\n' "$line"
	done
}

# kubeadm_config FUNCTION writes kubeadm's configuration where only root reads it, and prints its path.
kubeadm_config() {
	halves_agree >&2
	(
		umask 077
		mkdir -p "$SECRETS"
		with_secrets "$1" >"$SECRETS/kubeadm.yaml"
		[ "$1" != file_join ] || with_secrets discovery_text >"$SECRETS/join.conf"
	)
	printf '%s\n' "$SECRETS/kubeadm.yaml"
}

# discovery_text is the kubeconfig by which kubeadm finds the cluster, with the join token as its user: a hardened API server tells nobody
# but its health to who does not say who it is.
discovery_text() {
	found=$(secret discovery.conf)
	printf 'apiVersion: v1\nkind: Config\ncurrent-context: join\n'
	printf 'clusters:\n- name: cluster\n  cluster:\n'
	grep -e '^ *certificate-authority-data: ' -e '^ *server: ' "$found" | sed 's/^ */    /'
	printf 'contexts:\n- name: join\n  context:\n    cluster: cluster\n    user: join\n'
	printf 'users:\n- name: join\n  user:\n    token: @TOKEN@\n'
}

# file_init is kubeadm's configuration for a new cluster: the token's lines belong to the first document.
file_init() {
	file_token
	file_cluster
}

# plain_config FUNCTION writes a configuration without secrets in it for kubeadm, and prints its path.
plain_config() {
	halves_agree >&2
	(
		umask 077
		mkdir -p "$SECRETS"
		"$1" >"$SECRETS/kubeadm-plain.yaml"
	)
	printf '%s\n' "$SECRETS/kubeadm-plain.yaml"
}

# kubeadm writes into kubeconfigs the first of the cluster's CAs alone: while that is rotated, they have all of them afterwards, however
# it ended. Where it makes kubeconfigs, which are on control-plane hosts, it refuses one that has others than the first, by which that
# host signs: they have it alone before. A worker's first one may be the former CA, which API servers do not show any more.
kubeadm() {
	if ! several_cas; then
		"$BIN/kubeadm" "$@"
		return
	fi
	case " $* " in
	*" phase kubeconfig "* | *" control-plane-prepare kubeconfig "* | " init --"*) trust_in_kubeconfigs first_ca ;;
	esac
	ended=0
	"$BIN/kubeadm" "$@" || ended=$?
	trust_in_kubeconfigs all_cas
	return "$ended"
}

# several_cas succeeds while the cluster's CA is rotated, and this host trusts the present one and the next.
several_cas() {
	[ -s /etc/kubernetes/pki/ca.crt ] && [ "$(grep -c '^-----BEGIN CERTIFICATE-----' /etc/kubernetes/pki/ca.crt)" -gt 1 ]
}

all_cas() { cat /etc/kubernetes/pki/ca.crt; }
first_ca() { sed '/^-----END CERTIFICATE-----/q' /etc/kubernetes/pki/ca.crt; }

# trust_in_kubeconfigs CAS has all kubeconfigs of this host trust the CAs which that prints.
trust_in_kubeconfigs() {
	trusted=$("$1" | base64 -w 0)
	[ -n "$trusted" ] || die "/etc/kubernetes/pki/ca.crt has no certificate"
	for component in admin super-admin controller-manager scheduler kubelet; do
		TRUSTING=/etc/kubernetes/$component.conf
		[ ! -f "$TRUSTING" ] || put "$TRUSTING" 0600 trusting
	done
}

trusting() { sed "s|^\( *certificate-authority-data: \).*|\1$trusted|" "$TRUSTING"; }
