# alone waits until no attempt is starting a step here; none begins before this script has ended. Part of the scripts that
# tell how a step is. Exit status 80: another process has locked the file by which attempts exclude one another.
alone() {
	[ ! -e /var/lib/kubeone/step/flock ] || lock_file /var/lib/kubeone/step/flock "$PATIENCE" || exit 80
}

# killed ends a script that is alone and has found a step without a result. What that left of its secrets goes while this run
# has the lock.
killed() {
	[ -z "${generation:-}" ] || [ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" != "$generation" ] ||
		systemctl is-active --quiet kubeone-step.service || rm -rf /run/kubeone/secrets
	printf 'the step ended without a result: it was killed, or the host was\n' >&2
	exit 78
}

