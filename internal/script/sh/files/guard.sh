#!/bin/sh
# Runs on a control-plane host for as long as it lives, and keeps it from serving what is no longer true. A host that was cut
# off, or off, may come back to a cluster that was recovered without it; two such hosts would even have a quorum of their own.
# So the port of the API server is closed while etcd has no leader, when nothing can be served anyway, and opened again only
# after the other members were asked, with some patience for those that do not answer: if one belongs to another etcd cluster
# whose revisions are far ahead, as only a recovery makes them, this host ends its etcd and API server, and waits closed for
# "kubeone apply" to let it join anew.
set -u
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
pki=/etc/kubernetes/pki/etcd
period=2      # seconds between two looks of a watch that has no end, while something is wrong; nothing waits for it
calm=5        # the same, while all is well: each look costs a program and a handshake
far=500000000 # half of what a recovery adds to the revisions
state=unknown
dark=0  # how often in a row etcd had no leader, or did not answer
since=0 # looks since the other members were asked
quiet=0 # looks at which some member did not answer while the port was closed

shut() {
	[ "$state" != shut ] || return 0
	printf '%s\n' 'table inet kubeone-guard' 'delete table inet kubeone-guard' 'table inet kubeone-guard {' 'chain input {' \
		'type filter hook input priority -10;' 'tcp dport 6443 reject with tcp reset' '}' '}' | nft -f - || return 0
	state=shut quiet=0
	printf 'closed: %s\n' "$1"
}

unshut() {
	[ "$state" != open ] || return 0
	nft delete table inet kubeone-guard 2>/dev/null
	state=open quiet=0
	printf 'open\n'
}

# ask PATH BODY URL... asks members of etcd, one after the other, and prints a line for each that answers.
ask() {
	path=$1 body=$2
	shift 2
	for url in "$@"; do
		set -- "$@" "$url$path"
		shift
	done
	curl -q -sf -m 3 -w '\n' --noproxy '*' --cacert $pki/ca.crt --cert $pki/healthcheck-client.crt --key $pki/healthcheck-client.key \
		-d "$body" "$@" 2>/dev/null
}

# said reads a member's cluster ID, its revision and its leader's ID from its answer. One without a leader has said nothing.
said() { sed -n 's/.*"cluster_id":"\([0-9]*\)".*"revision":"\([0-9]*\)".*"leader":"\([0-9]*\)".*/\1 \2 \3/p'; }

# lives asks all members that this one knows of, and prints what they said, with an empty line for each that said nothing. One
# process asks them all: this is done for as long as the host lives.
lives() {
	# shellcheck disable=SC2046 # a list
	set -- $(ask /v3/cluster/member/list '{"linearizable":false}' https://127.0.0.1:2379 | grep -o '"https://[^"]*:2379"' | tr -d '"')
	[ $# -gt 0 ] || {
		printf '\n' # not even its own list: nothing is known
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

# outlived CLUSTER REVISION asks whether some member is of a cluster that was made from this one's data later. Its status is 0
# for yes, 1 for no, and 2 for no as far as they answer.
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

# step_down ends this host's control plane for good.
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

# look is one look at etcd.
look() {
	if [ ! -f /etc/kubernetes/manifests/etcd.yaml ]; then
		unshut # nothing is served here
		return 0
	fi
	answer=$(ask /v3/maintenance/status '{}' https://127.0.0.1:2379)
	[ $? != 28 ] || return 0 # too slow to say: nothing is known, and nothing changed
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
		look
		if [ "$state" = open ] && [ "$dark" = 0 ]; then sleep "$calm"; else sleep "$period"; fi
	done
	;;
stop) unshut ;;
esac
