# killed ends a script that finds a step without a result and without a unit, and removes what that step left of its secrets:
# while this run has the lock, and no other attempt has started anything. Part of the scripts that follow a step.
killed() {
	if [ -n "${generation:-}" ] && [ -e /var/lib/kubeone/step/mutex ]; then
		exec 9</var/lib/kubeone/step/mutex
		flock 9
		[ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" != "$generation" ] ||
			systemctl is-active --quiet kubeone-step.service || rm -rf /run/kubeone/secrets
		flock -u 9
	fi
	printf 'the step ended without a result: it was killed, or the host was\n' >&2
	exit 78
}

