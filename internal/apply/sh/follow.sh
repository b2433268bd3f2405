# Follows the running step to its end and exits with its status. Part of the scripts that start or await a step.
pid=$(systemctl show -p MainPID --value kubeone-step.service)
if [ "${pid:-0}" != 0 ]; then
	tail -s 0.1 --pid="$pid" -n +1 -f /var/lib/kubeone/step/log
else
	cat /var/lib/kubeone/step/log
fi
alone
rc=$(sed -n 's/^rc=//p' /var/lib/kubeone/step/result 2>/dev/null || true)
[ -n "$rc" ] || killed
exit "$rc"
