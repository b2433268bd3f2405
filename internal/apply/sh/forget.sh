# Removes the working directory from a host that is bare, unless another run has its lock, or works there, by now.
# Arguments: RUN.
set -eu
dir=/var/lib/kubeone/lock
if [ -d "$dir" ]; then
	exec 9>"$dir/mutex"
	flock 9
	if [ -f "$dir/owner" ] && [ "$(sed -n 's/^run=//p' "$dir/owner")" != "$1" ] || systemctl is-active --quiet kubeone-step.service; then
		printf 'held\n'
		exit 0
	fi
fi
rm -rf /var/lib/kubeone /run/kubeone
