# node.sh without a stage: runs the stages planned for this host, one after the other. The operator must first put on
# the host what kubeone would upload. Steps that concern more than this host are left to kubeone.
#
# Variables, set by script.go:
#
#	STAGES        list of the stages to run
#	LEFT          list of the host's other stages, which only kubeone or an explicit argument runs
#	SECRET_FILES  list of the files in $SECRETS that STAGES need

# bring_about runs STAGES.
bring_about() {
	[ -n "$STAGES" ] || die "usage: node.sh STAGE. Without a stage nothing is done here${LEFT:+; there are: $LEFT}"
	not_of_a_run
	no_run_active
	! joined_already || return 0
	secrets_there
	trap 'rm -rf "$SECRETS"' EXIT
	for planned in $STAGES; do
		say "$planned"
		case $planned in
		upgrade-*) cordoned ;;
		join-worker)
			say "its certificate is to be approved meanwhile, on a control-plane host:" \
				"kubectl get csr; kubectl certificate approve NAME"
			;;
		esac
		# In a subshell: no stage sees variables of another.
		(run_stage "$planned")
	done
	say "done: this host matches its plan${LEFT:+, but for: $LEFT}. kubeone apply does what concerns the cluster."
}

# not_of_a_run dies if this script is the copy that a run has left on the host: it may be out of date.
not_of_a_run() {
	here=${0%/*}
	[ "$here" != "$0" ] || here=.
	[ "$(cd "$here" 2>/dev/null && pwd)" != /var/lib/kubeone/step ] ||
		die "this is the script of an earlier run, and the host may be another by now:" \
			"kubeone plan --scripts writes the present one"
}

# joined_already succeeds, and says so, if this script is for a join and the host has joined already.
joined_already() {
	case " $STAGES " in *" prepare "*) ;; *) return 1 ;; esac
	grep -qs '^complete=yes$' "$MARKER" && grep -qxF "cluster=$CLUSTER" "$MARKER" || return 1
	say "this host is in the cluster already: kubeone plan says whether anything is left to do"
}

# no_run_active dies while kubeone works on this host. A run writes a heartbeat to the host's lock every few seconds.
no_run_active() {
	! systemctl is-active --quiet kubeone-step.service || die "kubeone runs a step on this host: wait for its end"
	beat=/var/lib/kubeone/lock/beat
	[ ! -f "$beat" ] || [ "$(($(date +%s) - $(stat -c %Y "$beat")))" -ge 20 ] ||
		die "kubeone works on this cluster: wait for its end"
}

# secrets_there dies if a secret that a stage needs is missing. For a new cluster it makes a token, which is never used.
secrets_there() {
	missing=
	for file in $SECRET_FILES; do [ -f "$SECRETS/$file" ] || missing="$missing $file"; done
	[ -z "$missing" ] ||
		die "missing in $SECRETS:$missing. They are made on a control-plane host of the cluster," \
			"as docs/operations.md says under \"A host by hand\""
	case " $STAGES " in
	*" init "*)
		[ -f "$SECRETS/token" ] || (umask 077 && mkdir -p "$SECRETS" &&
			printf '%s.%s\n' "$(letters 6)" "$(letters 16)" >"$SECRETS/token")
		;;
	esac
}

# letters N prints N random lower-case letters and digits.
letters() { tr -dc a-z0-9 </dev/urandom | dd bs=1 count="$1" 2>/dev/null; }

# cordoned dies unless this host's Node is unschedulable: the operator must drain it before an upgrade.
cordoned() {
	node=$(curl -fsS --noproxy "*" --max-time 10 --cacert /etc/kubernetes/pki/ca.crt --cert "$CLIENT_CERT" \
		"$ENDPOINT/api/v1/nodes/$NODE_NAME") ||
		die "cannot ask $ENDPOINT whether this host is drained"
	printf '%s\n' "$node" | grep -q '"unschedulable": *true' ||
		die "drain this host first: kubectl drain $NODE_NAME --ignore-daemonsets --delete-emptydir-data;" \
			"afterwards: kubectl uncordon $NODE_NAME"
}
