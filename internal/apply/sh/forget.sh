# Removes the working directory from a host that is bare, unless another run has its lock, or works there, by now.
# Arguments: RUN. Exit status 80: another process has locked the lock's file.
set -eu
dir=/var/lib/kubeone/lock
if [ -d "$dir" ]; then
	private "$dir"
	lock_file "$dir/flock" "$PATIENCE" || exit 80
	if [ -f "$dir/owner" ] && [ "$(sed -n 's/^run=//p' "$dir/owner")" != "$1" ] || systemctl is-active --quiet kubeone-step.service; then
		printf 'held\n'
		exit 0
	fi
fi
rm -rf /run/kubeone
for entry in /var/lib/kubeone/* /var/lib/kubeone/.[!.]*; do
	# Snapshots that are on a disk of their own were kept there.
	case $entry in
	*/snapshots)
		rm -f "$entry/.lock"
		rmdir "$entry" 2>/dev/null || true
		;;
	*) rm -rf "$entry" ;;
	esac
done
rmdir /var/lib/kubeone 2>/dev/null || true
