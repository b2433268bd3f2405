# One argument: the stage.

case "${1:-}" in
prepare | images | init | pki | join-prepare | join-etcd | join-finish | join-worker | restart-units | reset)
	"stage_$(printf '%s' "$1" | tr - _)"
	;;
*) die "usage: node.sh prepare|images|init|pki|join-prepare|join-etcd|join-finish|join-worker|restart-units|reset" ;;
esac
