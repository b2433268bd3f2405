# One argument: the stage. Its function is in one of the files before this one.

case "${1:-}" in
'' | *[!a-z-]*) die "usage: node.sh STAGE" ;;
esac
stage=stage_$(printf '%s' "$1" | tr - _)
command -v "$stage" >/dev/null || die "no such stage: $1"
"$stage"
