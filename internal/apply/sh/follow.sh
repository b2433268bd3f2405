# Follows the running step to its end. Part of the scripts that start or await a step. Exit status: that of the step;
# 78 it was killed, or the host was; 80 another process has locked the file by which attempts exclude one another.
pid=$(systemctl show -p MainPID --value kubeone-step.service)
if [ "${pid:-0}" != 0 ]; then
	tail -s 0.1 --pid="$pid" -n +1 -f /var/lib/kubeone/step/log
else
	cat /var/lib/kubeone/step/log
fi
# No attempt is starting a step while this script has the lock, and so none loses its secrets here.
[ ! -e /var/lib/kubeone/step/flock ] || lock_file /var/lib/kubeone/step/flock "$PATIENCE" || exit 80
rc=$(sed -n 's/^rc=//p' /var/lib/kubeone/step/result 2>/dev/null || true)
[ -z "$rc" ] || exit "$rc"
# The step has no result. Only the run that has the host's lock may remove its secrets.
[ -z "${generation:-}" ] || [ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" != "$generation" ] ||
	systemctl is-active --quiet kubeone-step.service || rm -rf /run/kubeone/secrets
printf 'the step ended without a result: it was killed, or the host was\n' >&2
exit 78
