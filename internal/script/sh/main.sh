# One argument: the stage. Its function is in one of the files before this one. Without an argument: all that is planned.

run_stage() { "stage_$(printf '%s' "$1" | tr - _)"; }

if [ $# = 0 ]; then
	bring_about
	exit 0
fi
case "$1" in
'' | *[!a-z-]*) die "usage: node.sh [STAGE]" ;;
esac
command -v "stage_$(printf '%s' "$1" | tr - _)" >/dev/null || die "no such stage: $1"
run_stage "$1"
