# Functions that all stages share.
#
# Variables of this host, set by internal/script/script.go at the top of the script. Stages split a list at spaces and a
# table at line ends. "yes|no" is one of these two words.
#
#	CLUSTER, NODE_NAME      names of the cluster and of this host's Node
#	ROLE                    control-plane|worker
#	HOST_ID, ID_DERIVED     stable ID of this host; yes|no: the ID is derived, because the manifest has none
#	MACHINE                 name of the host's Machine; "" for a host of the manifest
#	EPOCH                   number of recoveries of the cluster
#	ENDPOINT                URL of the cluster's API
#	LOCAL_ENDPOINT          URL of this host's own API server
#	KUBERNETES, KUBELET     desired versions of the control plane and of this kubelet, without "v"
#	HOST_DIGESTS            list NAME=SHA256: the configurations that stage prepare writes
#	NODE_DIGESTS            list NAME=SHA256: the configurations that a join writes
#	HARDENING               "", none or baseline
#	FILE_MODE               octal mode of the kubelet's unit and configuration
#	CNI_CONFIG              file name of the network plugin's CNI configuration; "" for none
#	PLUGIN_BINARIES         list of the network plugin's binaries
#	PUSHED                  yes|no: kubeone uploads artifacts; this host downloads nothing
#	HTTP_PROXY_URL, HTTPS_PROXY_URL, NO_PROXY_LIST
#	                        the proxy for downloads, as http_proxy, https_proxy and no_proxy have it
#	PROXY_AUTH              yes|no: PROXY_FILE has URLs with credentials
#	POLL                    seconds between two polls, a decimal fraction
#	BIN, ARTIFACTS, SECRETS, MARKER, DIGESTS, FILES, KEPT, UPGRADING, ROTATION, BEFORE, CLIENT_CERT, SERVING_CERT, ...
#	                        absolute paths; pathVariables in script.go has all of them
#	KUBEONE_RUN             from the environment: ID of the run; unset if an operator runs the script
#
# Variables that these functions set or take:
#
#	CHANGED                 yes as soon as put, link or changed has changed something; the caller resets it to no
#	DIRTY                   set by the caller: path of a file that changed creates before the change; "" for none

# say TEXT... prints a line.
say() { printf '%s\n' "$*"; }

# die TEXT... prints an error and ends the shell with status 1.
die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# have PROGRAM succeeds if PATH has the program.
have() { command -v "$1" >/dev/null 2>&1; }

# wait_for SECONDS WHAT COMMAND... polls until the command succeeds. It dies after SECONDS and names WHAT.
wait_for() {
	limit=$1 what=$2
	shift 2
	deadline=$(($(date +%s) + limit))
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$deadline" ] || die "gave up after ${limit} s waiting for ${what}$(last_words)"
		sleep "$POLL"
	done
}

# wait_for_pods PODS SECONDS WHAT COMMAND... is wait_for. On failure it also prints what the listed static pods logged
# last.
wait_for_pods() {
	pods=$1
	shift
	wait_for "$@"
	pods=
}

# last_words prints what the kubelet logged last if it keeps ending, and the last line of each static pod of the list
# $pods.
last_words() {
	restarts=$(systemctl show --property=NRestarts --value kubelet.service 2>/dev/null || :)
	case $restarts in
	'' | 0 | 1 | *[!0-9]*) ;; # it may restart once on a busy host
	*)
		printf '; the kubelet ended %s times: correct what it says, in the manifest or on the host, and apply again: %s' \
			"$restarts" "$(kubelet_error)"
		;;
	esac
	for pod in ${pods:-}; do
		log=
		for file in /var/log/pods/kube-system_"$pod"-*/"$pod"/*.log; do
			# A container that has just restarted has not logged anything yet.
			if [ -s "$file" ] && { [ -z "$log" ] || [ -n "$(find "$file" -newer "$log")" ]; }; then log=$file; fi
		done
		[ -z "$log" ] || printf '; %s says: %s' "$pod" \
			"$(sed -n '$s/^[^ ]* std[^ ]* [FP] //; $s/^\(.\{400\}\).*/\1/; $p' "$log")"
	done
}

# kubelet_error prints the last error that the kubelet logged before it ended, or else the last error in its recent log,
# or else the last line.
kubelet_error() {
	journalctl -u kubelet -n 400 --no-pager -o cat | {
		last='' ended='' line='' any=''
		while IFS= read -r line; do
			case $line in
			'') continue ;;
			*'Main process exited'*) ended=$last ;;
			I[0-9]*) ;;
			*err=* | *[Ee]rror* | *[Ii]nvalid*) last=$line ;;
			esac
			any=$line
		done
		printf '%s\n' "${ended:-${last:-$any}}"
	}
}

# RUNTIME_DIRTY is a file that exists while containerd has not restarted with its latest configuration.
RUNTIME_DIRTY=/var/lib/kubeone/containerd.changed

# changed sets CHANGED, and creates the file DIRTY if one is set. Callers call it before they make the change: if the
# run is killed, DIRTY tells the next one that the change may not be in effect.
changed() {
	CHANGED=yes
	[ -n "${DIRTY:-}" ] || return 0
	mkdir -p "${DIRTY%/*}"
	: >"$DIRTY"
}

# put PATH MODE FUNCTION writes the output of FUNCTION to the file PATH and sets the octal MODE. It renames a complete
# file, so that a power failure leaves either the old content or the new. CHANGED becomes yes if the content differs.
put() {
	put_path=$1 put_mode=$2 put_function=$3
	mkdir -p "${put_path%/*}"
	tmp=$(mktemp "${put_path%/*}/.kubeone.XXXXXX")
	"$put_function" >"$tmp"
	if cmp -s "$tmp" "$put_path"; then
		rm -f "$tmp"
		chmod "$put_mode" "$put_path"
		return 0
	fi
	chmod "$put_mode" "$tmp"
	on_disk "$tmp"
	changed
	mv -f "$tmp" "$put_path"
}

# link TARGET PATH makes PATH a symbolic link to TARGET, in one rename.
link() {
	[ "$(readlink "$2" 2>/dev/null)" = "$1" ] && return 0
	rm -f "$2.kubeone"
	ln -s "$1" "$2.kubeone"
	mv -fT "$2.kubeone" "$2"
	CHANGED=yes
}

# listens PORT[/PATH] fails if no process listens on the TCP port. Polls call it often, and it costs less than a
# request.
listens() {
	grep -qs ":$(printf '%04X' "${1%%/*}") [0-9A-F]*:0000 0A" /proc/net/tcp /proc/net/tcp6
	[ $? != 1 ] # status 2: the tables cannot be read here, so assume that there is a listener
}

# answers URL succeeds if the URL returns success within two seconds. It does not verify certificates: it asks
# components of this host only.
answers() {
	listens "${1#*://*:}" || return 1
	if have curl; then
		curl -fsk --noproxy "*" --max-time 2 "$1"
	elif have wget; then
		wget -q -T 2 -t 1 -O - --no-proxy --no-check-certificate "$1"
	else
		path=${1#*://}
		"$BIN/kubectl" --kubeconfig /dev/null --request-timeout 2s --insecure-skip-tls-verify \
			--server "${1%"/${path#*/}"}" get --raw "/${path#*/}"
	fi
}

readyz() { answers "https://127.0.0.1:6443/readyz"; }

# stuck_polls is how many polls in a row may find the API server stuck before it is killed.
stuck_polls=25

# await_api_server SECONDS waits for this host's API server. Before it is ready, an API server checks the Services' IP
# addresses. If that check runs too early, as on a busy host, the server retries it only after three minutes, but exits
# after one. A server stuck there is killed before that; the kubelet restarts it.
await_api_server() {
	stuck=0 api_killed=no
	wait_for_pods kube-apiserver "$1" "this host's API server" api_server_up
	[ "$api_killed" = no ] || say "this host's API server was stuck checking the Services' IP addresses, and was restarted"
}

# api_server_up succeeds if the API server is ready. It kills the server, once, after $stuck_polls polls in a row that
# found it waiting for that check alone.
api_server_up() {
	! readyz || return 0
	if answers "https://127.0.0.1:6443/readyz?exclude=poststarthook/start-service-ip-repair-controllers"; then
		stuck=$((stuck + 1))
	else
		stuck=0
	fi
	[ "$stuck" -ge "$stuck_polls" ] && [ "$api_killed" = no ] || return 1
	api_killed=yes
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

# etcd_votes succeeds if this host's etcd member answers, votes, and hears from a quorum. It asks twice: a member that
# has just started may not know yet that it is a learner. It knows once it has heard from a quorum for the first answer.
etcd_votes() {
	[ -f /etc/kubernetes/manifests/etcd.yaml ] &&
		answers http://127.0.0.1:2381/readyz && answers http://127.0.0.1:2381/readyz
}

# with_proxy COMMAND... runs a command that downloads something, with the proxy in its environment. The proxy's
# credentials are set for that command only.
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

# identity_text prints the lines of the marker that identify this host.
identity_text() {
	printf 'id=%s\nid-derived=%s\nnode=%s\n' "$HOST_ID" "$ID_DERIVED" "$NODE_NAME"
	[ -z "$MACHINE" ] || printf 'machine=%s\n' "$MACHINE"
}

# unclaimed dies if this host belongs to another Machine, or if it belongs to the manifest and this script is a
# Machine's.
unclaimed() {
	[ -f "$MARKER" ] || return 0
	machine=$(sed -n 's/^machine=//p' "$MARKER")
	[ -n "$machine$MACHINE" ] || return 0
	[ "$(sed -n 's/^id=//p' "$MARKER")" = "$HOST_ID" ] ||
		die "this host belongs to ${machine:+Machine }${machine:-the manifest}: nothing was changed"
}

# on_disk PATH... returns when the files below these paths would survive a power failure.
on_disk() { find "$@" \( -type f -o -type d \) -exec sync {} + 2>/dev/null || true; }

# file_modes sets the modes of files that components read, if the manifest sets HARDENING. kubeadm keeps the mode of an
# existing file. Other secret files have their mode from the beginning.
file_modes() {
	[ -n "$HARDENING" ] || return 0
	for file in /var/lib/kubelet/config.yaml "/etc/cni/net.d/${CNI_CONFIG:-none}"; do
		[ ! -f "$file" ] || chmod "$FILE_MODE" "$file"
	done
	[ "$HARDENING" = baseline ] || return 0
	for file in /etc/kubernetes/*.conf /etc/kubernetes/manifests/*.yaml \
		/etc/kubernetes/pki/*.key /etc/kubernetes/pki/etcd/*.key; do
		[ ! -f "$file" ] || chmod 0600 "$file"
	done
	[ "$ROLE" != control-plane ] || [ ! -d /var/lib/etcd ] || chmod 0700 /var/lib/etcd
}

# keep writes to disk what a complete host needs after a power failure.
keep() { on_disk /etc/kubernetes /etc/kubeone /var/lib/kubelet/config.yaml /var/lib/kubelet/pki; }

# mark yes|no writes the marker: whose host this is, and whether its join is complete. A complete host stays complete,
# and a host that a recovery has fenced stays fenced until its join is complete.
mark() {
	unclaimed
	if [ -f "$MARKER" ]; then
		owner=$(sed -n 's/^cluster=//p' "$MARKER")
		[ "$owner" = "$CLUSTER" ] || die "this host belongs to cluster ${owner}: reset it there first"
		joined=$(sed -n 's/^role=//p' "$MARKER")
		[ "${joined:-$ROLE}" = "$ROLE" ] || ! grep -q '^complete=yes$' "$MARKER" ||
			die "this host has joined as $joined since the plan was made: apply again"
		[ "$1" = yes ] || ! grep -q -e '^complete=yes$' -e '^fenced=' "$MARKER" || return 0
	fi
	[ "$1" = no ] || finish
	COMPLETE=$1
	put "$MARKER" 0644 marker_text
}

# finish does what must be in place before the marker says complete, since no stage checks it afterwards.
finish() {
	if [ "$ROLE" = control-plane ]; then
		guard_etcd
		guard_on
	fi
	file_modes
	keep
}

# digests_text prints $DIGESTS without the names of the list REPLACED, and with the list NEW_DIGESTS.
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

# record NAME=SHA256... records which configurations this host now has, and the digests of the files made from them.
record() {
	NEW_DIGESTS=$*
	REPLACED=
	for pair in "$@"; do REPLACED="$REPLACED ${pair%%=*}"; done
	file_modes # first: restore-files gives a file the mode of its kept copy
	# shellcheck disable=SC2046 # a list
	note_files $(for name in $REPLACED; do files_of "$name"; done)
	put "$DIGESTS" 0644 digests_text
}

# files_of NAME prints the paths of the files that a configuration consists of. They have no spaces.
files_of() {
	case $1 in
	containerd)
		for file in /etc/containerd/config.toml /etc/containerd/certs.d/*/hosts.toml /etc/systemd/system/containerd.service \
			/etc/systemd/system/containerd.service.d/kubeone-proxy.conf; do printf '%s\n' "$file"; done
		;;
	kernel) printf '%s\n' /etc/modules-load.d/kubeone.conf /etc/sysctl.d/99-zz-kubeone.conf ;;
	kubelet) printf '%s\n' /var/lib/kubelet/config.yaml /etc/systemd/system/kubelet.service ;;
	etcd-defrag)
		printf '%s\n' /etc/systemd/system/kubeone-etcd-defrag.timer /etc/systemd/system/kubeone-etcd-defrag.service \
			/etc/kubeone/addons/etcd-defrag.sh
		;;
	unattended-upgrades)
		printf '%s\n' /etc/systemd/system/kubeone-unattended-upgrades.timer \
			/etc/systemd/system/kubeone-unattended-upgrades.service \
			/etc/apt/apt.conf.d/99kubeone-unattended-upgrades /etc/kubeone/addons/dnf-automatic.conf
		;;
	components)
		for name in $STATIC_PODS; do printf '/etc/kubernetes/manifests/%s.yaml\n' "$name"; done
		component_paths
		;;
	esac
}

# note_files FILE... records the digests of the files, so that a later edit is detected, and keeps copies, so that stage
# restore-files can restore them. It writes copies before the record, and deletes obsolete copies after it.
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

# keep_files FILE... copies files to a directory of root's, each under the name of its digest.
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

# forget_files FILE... removes the records of files that the caller is about to write. If the step is interrupted, an
# incomplete file is not taken for an edited one.
forget_files() {
	OLD=$* NEW=
	[ ! -f "$FILES" ] || put "$FILES" 0644 files_text
}

# files_text prints $FILES without the files of the list OLD, and with those of the list NEW. If OLD has containerd's
# configuration, it also drops all registries' files: a registry that is no longer desired has none.
files_text() {
	[ ! -f "$FILES" ] || while read -r sum file; do
		case " $OLD " in
		*" $file "*) ;;
		*" /etc/containerd/config.toml "*)
			case $file in /etc/containerd/certs.d/*) ;; *) printf '%s  %s\n' "$sum" "$file" ;; esac
			;;
		*) printf '%s  %s\n' "$sum" "$file" ;;
		esac
	done <"$FILES"
	for file in $NEW; do
		[ ! -f "$file" ] || sha256sum "$file"
	done
}

STATIC_PODS="etcd kube-apiserver kube-controller-manager kube-scheduler"

# secret NAME prints the path of a secret file that kubeone has uploaded for this step. It dies if there is none.
secret() {
	[ -f "$SECRETS/$1" ] || die "$SECRETS/$1 is missing: it is put there before the step and removed after it"
	printf '%s\n' "$SECRETS/$1"
}

# with_secrets FUNCTION prints the output of FUNCTION with the bootstrap token in place of @TOKEN@.
with_secrets() {
	token=$(cat "$(secret token)")
	"$1" | while IFS= read -r line; do
		case $line in
		*@TOKEN@*) line=${line%%@TOKEN@*}$token${line#*@TOKEN@} ;;
		esac
		printf '%s\n' "$line"
	done
}

# kubeadm_config FUNCTION writes a kubeadm configuration with secrets to a file of root's, and prints its path.
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

# discovery_text prints the kubeconfig that kubeadm discovers the cluster with. Its user is the join token: a hardened
# API server answers nothing but health checks to anonymous clients.
discovery_text() {
	found=$(secret discovery.conf)
	printf 'apiVersion: v1\nkind: Config\ncurrent-context: join\n'
	printf 'clusters:\n- name: cluster\n  cluster:\n'
	grep -e '^ *certificate-authority-data: ' -e '^ *server: ' "$found" | sed 's/^ */    /'
	printf 'contexts:\n- name: join\n  context:\n    cluster: cluster\n    user: join\n'
	printf 'users:\n- name: join\n  user:\n    token: @TOKEN@\n'
}

# file_init prints kubeadm's configuration for a new cluster. The token's lines belong to the first document.
file_init() {
	file_token
	file_cluster
}

# plain_config FUNCTION writes a kubeadm configuration without secrets to a file, and prints its path.
plain_config() {
	halves_agree >&2
	(
		umask 077
		mkdir -p "$SECRETS"
		"$1" >"$SECRETS/kubeadm-plain.yaml"
	)
	printf '%s\n' "$SECRETS/kubeadm-plain.yaml"
}

# kubeadm ARGUMENT... runs kubeadm while a rotation of the cluster's CA may be under way. Then ca.crt has several CAs,
# but kubeadm writes only the first one into kubeconfigs. Afterwards this function writes all of them, also if kubeadm
# failed. Phases that make kubeconfigs refuse one that trusts more than the first CA, so those get the first alone
# beforehand. This must not be done on workers, where the first CA may be the former one, which API servers no longer
# present.
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

# several_cas succeeds while a rotation of the cluster's CA has this host trust more than one.
several_cas() {
	[ -s /etc/kubernetes/pki/ca.crt ] && [ "$(grep -c '^-----BEGIN CERTIFICATE-----' /etc/kubernetes/pki/ca.crt)" -gt 1 ]
}

all_cas() { cat /etc/kubernetes/pki/ca.crt; }
first_ca() { sed '/^-----END CERTIFICATE-----/q' /etc/kubernetes/pki/ca.crt; }

# trust_in_kubeconfigs FUNCTION makes all kubeconfigs of this host trust the CAs that FUNCTION prints.
trust_in_kubeconfigs() {
	trusted=$("$1" | base64 -w 0)
	[ -n "$trusted" ] || die "/etc/kubernetes/pki/ca.crt has no certificate"
	for component in admin super-admin controller-manager scheduler kubelet; do
		TRUSTING=/etc/kubernetes/$component.conf
		[ ! -f "$TRUSTING" ] || put "$TRUSTING" 0600 trusting
	done
}

trusting() { sed "s|^\( *certificate-authority-data: \).*|\1$trusted|" "$TRUSTING"; }
