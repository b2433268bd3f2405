# The operator's own commands on this host, which run before or after something is done to it. Which these are says hooks_of
# (above), by moment: "after-join".

stage_hooks() {
	MOMENT=$1
	hooks_of "$MOMENT"
	case $MOMENT in
	after-*) rm -f "$HOOKS/${MOMENT#after-}" ;;
	esac
}

# hook NAME SECONDS COMMAND... runs one.
hook() {
	hook=$1 seconds=$2
	shift 2
	say "hook $hook: $*"
	command -v "$1" >/dev/null || die "hook $hook cannot be run: $1 is no program of this host"
	rc=0 began=$(date +%s)
	KUBEONE_HOOK=$hook KUBEONE_MOMENT=$MOMENT KUBEONE_CLUSTER=$CLUSTER KUBEONE_NODE=$NODE_NAME KUBEONE_ROLE=$ROLE \
		KUBEONE_ADDRESS=$ADDRESS timeout -k 5 "$seconds" "$@" </dev/null || rc=$?
	case $rc in
	0) return 0 ;;
	124 | 137) [ $(($(date +%s) - began)) -lt "$seconds" ] || die "hook $hook was killed: it has not ended within $seconds s" ;;
	esac
	die "hook $hook failed: $1 ended with status $rc"
}

# owe_hooks STAGE notes, before a stage, what is done to the host by it and has hooks to follow: whoever comes after a run
# that ended before these had succeeded sees that they are to run.
owe_hooks() {
	for owed in $HOOKS_OWED; do
		[ "${owed%%:*}" = "$1" ] || continue
		mkdir -p "$HOOKS"
		: >"$HOOKS/${owed#*:}"
	done
}
