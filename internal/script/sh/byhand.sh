# node.sh without a stage: what the host's plan has for it, one stage after the other. What kubeone would put on the host before a
# stage must be there, and what concerns more than this host is left to kubeone.

bring_about() {
	[ -n "$STAGES" ] || die "usage: node.sh STAGE. Without a stage nothing is done here${LEFT:+; there are: $LEFT}"
	not_of_a_run
	nobody_else
	! joined_already || return 0
	secrets_there
	trap 'rm -rf "$SECRETS"' EXIT
	for planned in $STAGES; do
		say "$planned"
		case $planned in
		upgrade-*) cordoned ;;
		join-worker) say "its certificate is to be approved meanwhile, on a control-plane host: kubectl get csr; kubectl certificate approve NAME" ;;
		esac
		# Each in a shell of its own: what one sets is not the next one's.
		(run_stage "$planned")
	done
	say "done: this host is as its plan wants it${LEFT:+, but for: $LEFT}. kubeone apply does what concerns the cluster."
}

# not_of_a_run dies where this is the script that a run has left on the host: what it brought about is of the past.
not_of_a_run() {
	here=${0%/*}
	[ "$here" != "$0" ] || here=.
	[ "$(cd "$here" 2>/dev/null && pwd)" != /var/lib/kubeone/step ] ||
		die "this is the script of an earlier run, and the host may be another by now: kubeone plan --scripts writes the present one"
}

# joined_already succeeds, and says so, where the script is of a host that is to join, and it has.
joined_already() {
	case " $STAGES " in *" prepare "*) ;; *) return 1 ;; esac
	grep -qs '^complete=yes$' "$MARKER" && grep -qxF "cluster=$CLUSTER" "$MARKER" || return 1
	say "this host is in the cluster already: kubeone plan says whether anything is left to do"
}

# nobody_else dies while kubeone works on this host, which hears from whoever has its lock every few seconds.
nobody_else() {
	! systemctl is-active --quiet kubeone-step.service || die "kubeone runs a step on this host: wait for its end"
	beat=/var/lib/kubeone/lock/beat
	[ ! -f "$beat" ] || [ "$(($(date +%s) - $(stat -c %Y "$beat")))" -ge 20 ] || die "kubeone works on this cluster: wait for its end"
}

# secrets_there dies, before anything is done, where a secret is missing that a stage needs. A cluster begins with a token that
# nobody uses.
secrets_there() {
	missing=
	for file in $SECRET_FILES; do [ -f "$SECRETS/$file" ] || missing="$missing $file"; done
	[ -z "$missing" ] || die "missing in $SECRETS:$missing. They are made on a control-plane host of the cluster, as docs/operations.md says under \"A host by hand\""
	case " $STAGES " in
	*" init "*) [ -f "$SECRETS/token" ] || (umask 077 && mkdir -p "$SECRETS" && printf '%s.%s\n' "$(letters 6)" "$(letters 16)" >"$SECRETS/token") ;;
	esac
}

# letters N prints so many random letters and digits.
letters() { tr -dc a-z0-9 </dev/urandom | dd bs=1 count="$1" 2>/dev/null; }

# cordoned dies unless this host's Node takes no new pods: who upgrades it has drained it before.
cordoned() {
	node=$(curl -fsS --noproxy "*" --max-time 10 --cacert /etc/kubernetes/pki/ca.crt --cert "$CLIENT_CERT" "$ENDPOINT/api/v1/nodes/$NODE_NAME") ||
		die "cannot ask $ENDPOINT whether this host is drained"
	printf '%s\n' "$node" | grep -q '"unschedulable": *true' ||
		die "drain this host first: kubectl drain $NODE_NAME --ignore-daemonsets --delete-emptydir-data; afterwards: kubectl uncordon $NODE_NAME"
}
