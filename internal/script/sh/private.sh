# What is root's alone on a host: directories, and the files with which our scripts exclude one another. Any process that can
# open such a file, even for reading, can lock it.

# private DIRECTORY makes a directory for root only, and closes one that others could enter.
private() {
	(
		umask 077
		mkdir -p "$1"
	) && chmod 0700 "$1"
}

# own_directory makes the directory with what is ours here private, also one that the operator has made for uploads.
own_directory() { private /var/lib/kubeone; }

# lock_file FILE SECONDS locks the file until the script ends or calls flock -u 9. After that many seconds it fails, and says
# on standard error which process has the lock. The file is in a private directory.
lock_file() {
	(umask 077 && : >>"$1") || return 1
	exec 9<"$1"
	flock -w "$2" 9 || {
		printf '%s has been locked for %s s by %s\n' "$1" "$2" "$(lock_holders "$1")" >&2
		return 1
	}
}

# lock_holders FILE prints which processes have the file locked, three at most, and what to do. /proc/locks is of no use here: it
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
