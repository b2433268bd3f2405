# Runs the stage named by the script's only argument; without an argument, all stages that are planned for this host.

# run_stage STAGE
run_stage() {
	own_directory
	owe_hooks "$1"
	case $1 in
	hooks-*) stage_hooks "${1#hooks-}" ;;
	*) "stage_$(printf '%s' "$1" | tr - _)" ;;
	esac
}

if [ $# = 0 ]; then
	bring_about
	exit 0
fi
case "$1" in
'' | *[!a-z-]*) die "usage: node.sh [STAGE]" ;;
esac
case "$1" in
hooks-*) ;;
*) command -v "stage_$(printf '%s' "$1" | tr - _)" >/dev/null || die "no such stage: $1" ;;
esac
run_stage "$1"
