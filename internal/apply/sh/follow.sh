# Follows the running step to its end and exits with its status. Part of the scripts that start or await a step.
pid=$(systemctl show -p MainPID --value kubeone-step.service)
if [ "${pid:-0}" != 0 ]; then
	tail -s 0.1 --pid="$pid" -n +1 -f /var/lib/kubeone/step/log
else
	cat /var/lib/kubeone/step/log
fi
rc=$(sed -n 's/^rc=//p' /var/lib/kubeone/step/result 2>/dev/null || true)
[ -n "$rc" ] || {
	# It did not live to remove its secrets.
	[ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" != "${generation:-}" ] || rm -rf /run/kubeone/secrets
	printf 'the step ended without a result: it was killed, or the host was\n' >&2
	exit 78
}
exit "$rc"
