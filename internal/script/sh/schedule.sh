# stage snapshot, the timer of the scheduled snapshots, and what all timers share.
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
	run_timer snapshot
}

# remove_snapshot_timer removes the timer and keeps the snapshots.
remove_snapshot_timer() {
	[ ! -e /etc/systemd/system/kubeone-snapshot.timer ] || remove_timer snapshot /etc/kubeone/snapshot.sh
}

# run_timer NAME starts the timer kubeone-NAME, unless CHANGED is no and it runs.
run_timer() {
	[ "$CHANGED" = yes ] || ! timer_runs "$1" || return 0
	systemctl daemon-reload
	systemctl -q enable "kubeone-$1.timer"
	systemctl restart "kubeone-$1.timer"
}

# timer_runs NAME succeeds if the timer is active with its present file. An earlier run may have been killed before the
# start.
timer_runs() {
	systemctl -q is-enabled "kubeone-$1.timer" 2>/dev/null && systemctl -q is-active "kubeone-$1.timer" &&
		[ "$(systemctl show -p NeedDaemonReload "kubeone-$1.timer")" != NeedDaemonReload=yes ]
}

# remove_timer NAME FILE... removes the timer kubeone-NAME, its service, and other files of it.
remove_timer() {
	unit=kubeone-$1
	shift
	systemctl disable --now "$unit.timer" 2>/dev/null || true
	systemctl stop "$unit.service" 2>/dev/null || true
	rm -f "/etc/systemd/system/$unit.timer" "/etc/systemd/system/$unit.service" "$@"
	systemctl daemon-reload
	systemctl reset-failed "$unit.service" 2>/dev/null || true
}
