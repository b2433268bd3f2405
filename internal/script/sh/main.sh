# One argument: the stage.

case "${1:-}" in
prepare | images | init | pki | join-prepare | join-etcd | join-finish | join-worker | restart-units | rewrite | set-aside | reset | fetch | check | \
	upgrade-control-plane | upgrade-worker | system-addons | snapshot | fence | restore)
	"stage_$(printf '%s' "$1" | tr - _)"
	;;
*) die "usage: node.sh prepare|images|init|pki|join-prepare|join-etcd|join-finish|join-worker|restart-units|rewrite|set-aside|reset|fetch|check|upgrade-control-plane|upgrade-worker|system-addons|snapshot|fence|restore" ;;
esac
