# Removes kubeone's directories from a bare host, unless another run holds its lock or runs a step there.
#
#	$1  ID of this run
#
# PATIENCE is set by locks.WithFile: seconds to wait for the lock file. Exit status 80: another process holds it.
set -eu
dir=/var/lib/kubeone/lock
if [ -d "$dir" ]; then
	private "$dir"
	lock_file "$dir/flock" "$PATIENCE" || exit 80
	if [ -f "$dir/owner" ] && [ "$(sed -n 's/^run=//p' "$dir/owner")" != "$1" ] ||
		systemctl is-active --quiet kubeone-step.service; then
		printf 'held\n'
		exit 0
	fi
fi
rm -rf /run/kubeone
for entry in /var/lib/kubeone/* /var/lib/kubeone/.[!.]*; do
	# A directory of snapshots that is a mount point has been kept.
	case $entry in
	*/snapshots)
		rm -f "$entry/.lock"
		rmdir "$entry" 2>/dev/null || true
		;;
	*) rm -rf "$entry" ;;
	esac
done
rmdir /var/lib/kubeone 2>/dev/null || true
