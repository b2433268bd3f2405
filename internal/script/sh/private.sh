# Directories and lock files that only root can open. Any process that can open a lock file, even read-only, can lock
# it.

# private DIRECTORY creates a directory for root only, or restricts an existing one.
private() {
	(
		umask 077
		mkdir -p "$1"
	) && chmod 0700 "$1"
}

# own_directory makes kubeone's own directory private, also if the operator has created it for uploads.
own_directory() { private /var/lib/kubeone; }

# lock_file FILE SECONDS locks the file until the script ends or calls flock -u 9. FILE is in a private directory. After
# SECONDS it fails and prints to standard error which process holds the lock.
lock_file() {
	(umask 077 && : >>"$1") || return 1
	exec 9<"$1"
	flock -w "$2" 9 || {
		printf '%s has been locked for %s s by %s\n' "$1" "$2" "$(lock_holders "$1")" >&2
		return 1
	}
}

# lock_holders FILE prints which processes, three at most, hold the lock, and what to do. /proc/locks does not help: it
# names the program flock, which has ended.
lock_holders() {
	locked=$(readlink -f "$1")
	found=$(find /proc/[0-9]*/fdinfo -type f -exec grep -ls "FLOCK .*:$(stat -c %i "$locked") " {} + 2>/dev/null |
		while IFS=/ read -r _ _ pid _ number; do
			[ "$(readlink "/proc/$pid/fd/$number")" != "$locked" ] || printf '%s (%s)\n' "$pid" "$(cat "/proc/$pid/comm")"
		done 2>/dev/null | sort -u | sed -n '1,3p')
	[ -n "$found" ] || {
		printf 'a process that /proc does not show: restart this host if that does not end, and run kubeone again'
		return 0
	}
	printf 'process %s: end it if it hangs (kill PID on this host), and run kubeone again' \
		"$(printf '%s\n' "$found" | sed -n -e '1h' -e '1!H' -e '${' -e x -e 's/\n/, /g' -e p -e '}')"
}
