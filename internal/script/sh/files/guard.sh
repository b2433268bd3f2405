#!/bin/sh
# Guards a control-plane host against serving an outdated cluster. A host that was off, or cut off, may come back after
# the cluster was recovered without it; two such hosts even have a quorum of their own.
#
# While etcd has no leader, nothing can be served, so the guard closes the API server's port. Before it opens the port
# again, it asks the other members, and waits a while for those that do not answer. If one belongs to another etcd
# cluster whose revision is far ahead, which only a recovery causes, the guard ends this host's etcd and API server. The
# port then stays closed until "kubeone apply" lets the host join again.
#
# Argument: start runs the guard until it is killed; stop opens the port.
set -u
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
pki=/etc/kubernetes/pki/etcd
period=2      # seconds between two checks while something is wrong
calm=5        # seconds between two checks while all is well: each costs a process and a TLS handshake
far=500000000 # half of what a recovery adds to the revisions
state=unknown # of the port: shut, open or unknown
dark=0        # checks in a row that found etcd without a leader, or without an answer
since=0       # checks since the other members were asked
quiet=0       # checks that found a member silent while the port was closed

# shut WHY closes the port.
shut() {
	[ "$state" != shut ] || return 0
	printf '%s\n' 'table inet kubeone-guard' 'delete table inet kubeone-guard' \
		'table inet kubeone-guard {' 'chain input {' \
		'type filter hook input priority -10;' 'tcp dport 6443 reject with tcp reset' '}' '}' | nft -f - || return 0
	state=shut quiet=0
	printf 'closed: %s\n' "$1"
}

# unshut opens the port.
unshut() {
	[ "$state" != open ] || return 0
	nft delete table inet kubeone-guard 2>/dev/null
	state=open quiet=0
	printf 'open\n'
}

# ask PATH BODY URL... posts BODY to PATH of members of etcd, one after the other, and prints a line for each answer.
ask() {
	path=$1 body=$2
	shift 2
	for url in "$@"; do
		set -- "$@" "$url$path"
		shift
	done
	curl -q -sf -m 3 -w '\n' --noproxy '*' --cacert $pki/ca.crt \
		--cert $pki/healthcheck-client.crt --key $pki/healthcheck-client.key \
		-d "$body" "$@" 2>/dev/null
}

# said reads a member's status and prints its cluster ID, revision and leader's ID. A member without a leader prints
# nothing.
said() { sed -n 's/.*"cluster_id":"\([0-9]*\)".*"revision":"\([0-9]*\)".*"leader":"\([0-9]*\)".*/\1 \2 \3/p'; }

# lives prints what said prints for all members that this host's member knows of, and an empty line for each silent one.
# It starts one curl for all of them, because it runs for the lifetime of the host.
lives() {
	# shellcheck disable=SC2046 # a list
	set -- $(ask /v3/cluster/member/list '{"linearizable":false}' https://127.0.0.1:2379 |
		grep -o '"https://[^"]*:2379"' | tr -d '"')
	[ $# -gt 0 ] || {
		printf '\n' # this host's member does not list any: nothing is known
		return 0
	}
	ask /v3/maintenance/status '{}' "$@" | said | {
		silent=$#
		while read -r life; do
			printf '%s\n' "$life"
			silent=$((silent - 1))
		done
		while [ "$silent" -gt 0 ]; do
			printf '\n'
			silent=$((silent - 1))
		done
	}
}

# outlived CLUSTER REVISION checks whether a member belongs to a cluster that was restored later from this one's data.
# The exit status is 0 for yes, 1 for no, and 2 for no, although some members did not answer.
outlived() {
	lives | {
		answer=1
		while read -r cluster revision _; do
			if [ -z "$cluster" ]; then
				[ "$answer" = 0 ] || answer=2
			elif [ "$cluster" != "$1" ] && [ "$revision" -gt $(($2 + far)) ]; then
				answer=0
			fi
		done
		exit "$answer"
	}
}

# step_down ends this host's control plane permanently.
step_down() {
	shut "the cluster was recovered without this host; kubeone apply lets it join again"
	systemctl disable --now kubelet.service
	for file in /proc/[0-9]*/comm; do
		case $(cat "$file" 2>/dev/null) in
		etcd | kube-apiserver | kube-controller | kube-scheduler)
			dir=${file%/comm}
			! grep -qs -e kubepods -e cri-containerd "$dir/cgroup" || kill -KILL "${dir##*/}"
			;;
		esac
	done
}

# check_etcd checks etcd once, and closes or opens the port.
check_etcd() {
	if [ ! -f /etc/kubernetes/manifests/etcd.yaml ]; then
		unshut # this host serves nothing
		return 0
	fi
	answer=$(ask /v3/maintenance/status '{}' https://127.0.0.1:2379)
	[ $? != 28 ] || return 0 # timed out: the state is unknown, so change nothing
	own=$(printf '%s\n' "$answer" | said)
	if [ -z "$own" ]; then
		dark=$((dark + 1))
		[ "$dark" -lt 3 ] || shut "etcd has no leader"
		return 0
	fi
	dark=0 since=$((since + 1))
	[ "$state" != open ] || [ "$since" -ge 2 ] || return 0
	since=0
	own=${own% *}
	outlived "${own% *}" "${own#* }"
	case $? in
	0) step_down ;;
	1) unshut ;;
	*)
		[ "$state" = open ] || quiet=$((quiet + 1))
		[ "$quiet" -lt 8 ] || unshut
		;;
	esac
}

case ${1:-} in
start)
	dark=3
	while :; do
		check_etcd
		if [ "$state" = open ] && [ "$dark" = 0 ]; then sleep "$calm"; else sleep "$period"; fi
	done
	;;
stop) unshut ;;
esac
