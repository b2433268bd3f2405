# Hooks: the operator's own commands, which run before or after something is done to this host.
#
# script.go defines hooks_of MOMENT, which calls hook for each hook of a moment such as "after-join". It also sets
# ADDRESS, the host's public address, HOOKS, a directory, and HOOKS_OWED, a list STAGE:ACTIVITY.

# stage_hooks MOMENT runs the hooks of a moment.
stage_hooks() {
	MOMENT=$1
	hooks_of "$MOMENT"
	case $MOMENT in
	after-*) rm -f "$HOOKS/${MOMENT#after-}" ;;
	esac
}

# hook NAME SECONDS COMMAND... runs one hook, for SECONDS at most.
hook() {
	hook=$1 seconds=$2
	shift 2
	say "hook $hook: $*"
	command -v "$1" >/dev/null || die "hook $hook cannot be run: this host has no program $1"
	rc=0 began=$(date +%s)
	KUBEONE_HOOK=$hook KUBEONE_MOMENT=$MOMENT KUBEONE_CLUSTER=$CLUSTER KUBEONE_NODE=$NODE_NAME KUBEONE_ROLE=$ROLE \
		KUBEONE_ADDRESS=$ADDRESS timeout -k 5 "$seconds" "$@" </dev/null || rc=$?
	case $rc in
	0) return 0 ;;
	124 | 137)
		[ $(($(date +%s) - began)) -lt "$seconds" ] ||
			die "hook $hook was killed: it has not ended within $seconds s"
		;;
	esac
	die "hook $hook failed: $1 ended with status $rc"
}

# owe_hooks STAGE records, before a stage, which activity will have hooks to follow. If the run ends before these have
# succeeded, the next one runs them.
owe_hooks() {
	for owed in $HOOKS_OWED; do
		[ "${owed%%:*}" = "$1" ] || continue
		mkdir -p "$HOOKS"
		: >"$HOOKS/${owed#*:}"
	done
}
