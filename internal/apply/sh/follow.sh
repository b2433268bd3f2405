# Follows the running step to its end. Part of the scripts that start or await a step.
#
# Variables: PATIENCE, seconds to wait for a lock file, set by locks.WithFile; generation, set by start.sh, or unset.
#
# Exit status: that of the step; 78 if the step, or the host, was killed; 80 if another process holds the lock file.
pid=$(systemctl show -p MainPID --value kubeone-step.service)
if [ "${pid:-0}" != 0 ]; then
	tail -s 0.1 --pid="$pid" -n +1 -f /var/lib/kubeone/step/log
else
	cat /var/lib/kubeone/step/log
fi
# While this script holds the lock file, no attempt starts a step, so the secrets below are not those of a new one.
[ ! -e /var/lib/kubeone/step/flock ] || lock_file /var/lib/kubeone/step/flock "$PATIENCE" || exit 80
rc=$(sed -n 's/^rc=//p' /var/lib/kubeone/step/result 2>/dev/null || true)
[ -z "$rc" ] || exit "$rc"
# The step left no result. Only the run that holds the host's lock may remove its secrets.
[ -z "${generation:-}" ] || [ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" != "$generation" ] ||
	systemctl is-active --quiet kubeone-step.service || rm -rf /run/kubeone/secrets
printf 'the step ended without a result: it was killed, or the host was\n' >&2
exit 78
