# stage restart-units: restarts units. If one does not start, it dies with the unit's last log lines.
#
# Variables, set by RestartUnitsParams in internal/plan/step/repair.go:
#
#	UNITS     list of the units to restart: containerd, kubelet
#	SWAP_OFF  not "": also turn swap off

stage_restart_units() {
	systemctl daemon-reload
	[ -z "$SWAP_OFF" ] || swap_off
	[ ! -e "$RUNTIME_DIRTY" ] || UNITS="containerd ${UNITS#*containerd}"
	for unit in $UNITS; do
		say "restarting $unit"
		systemctl -q enable "$unit"
		systemctl reset-failed "$unit" 2>/dev/null || true
		systemctl restart "$unit" || die "$unit does not start: $(journalctl -u "$unit" -n 5 --no-pager -o cat)"
		[ "$unit" != containerd ] || rm -f "$RUNTIME_DIRTY"
	done
	wait_for 120 "the kubelet's /healthz" kubelet_healthy
	if [ -f /etc/kubernetes/manifests/kube-apiserver.yaml ]; then
		await_api_server 240
	fi
}
