# stage snapshot, and the timer of the scheduled snapshots.
#
# Variables, set by script.go:
#
#	SNAPSHOT_EVERY   seconds between two scheduled snapshots; 0 for none
#	SNAPSHOT_REASON  last part of the snapshot's name

stage_snapshot() {
	[ "$ROLE" = control-plane ] || die "this host is no control-plane host"
	configure_snapshots
	take_snapshot "$SNAPSHOT_REASON"
}

# configure_snapshots installs the timer, or removes it if no schedule is desired.
configure_snapshots() {
	[ "$ROLE" = control-plane ] || return 0
	if [ "$SNAPSHOT_EVERY" = 0 ]; then
		remove_snapshot_timer
		return 0
	fi
	CHANGED=no
	put /etc/kubeone/snapshot.sh 0700 file_snapshot_script
	put /etc/systemd/system/kubeone-snapshot.service 0644 file_snapshot_service
	put /etc/systemd/system/kubeone-snapshot.timer 0644 file_snapshot_timer
	[ "$CHANGED" = yes ] || ! timer_runs || return 0
	systemctl daemon-reload
	systemctl -q enable kubeone-snapshot.timer
	systemctl restart kubeone-snapshot.timer
}

# timer_runs succeeds if the timer is active with its present file. An earlier run may have been killed before the
# start.
timer_runs() {
	systemctl -q is-enabled kubeone-snapshot.timer 2>/dev/null && systemctl -q is-active kubeone-snapshot.timer &&
		[ "$(systemctl show -p NeedDaemonReload kubeone-snapshot.timer)" != NeedDaemonReload=yes ]
}

# remove_snapshot_timer removes the timer and keeps the snapshots.
remove_snapshot_timer() {
	[ -e /etc/systemd/system/kubeone-snapshot.timer ] || return 0
	systemctl disable --now kubeone-snapshot.timer 2>/dev/null || true
	systemctl stop kubeone-snapshot.service 2>/dev/null || true
	rm -f /etc/systemd/system/kubeone-snapshot.timer /etc/systemd/system/kubeone-snapshot.service /etc/kubeone/snapshot.sh
	systemctl daemon-reload
	systemctl reset-failed kubeone-snapshot.service 2>/dev/null || true
}
