# Takes the host's lock for an operator and keeps it while standard input brings a line every few seconds.
# Arguments: HOLDER RUN FORCE(yes|no) STALE(seconds) GENERATION. A generation other than 0 is that of a lock whose keeper
# lost its connection; it is kept on only if nobody took the lock in between.
# Prints "granted GENERATION", or "held" and the owner's lines. Exit status 73: nothing can be written here, and so there is
# no lock; what was there is as it was. 80: another process has locked the file by which these scripts exclude one another.
set -eu
umask 077
holder=$1 run=$2 force=$3 stale=$4 ours=$5
dir=/var/lib/kubeone/lock
own_directory && private "$dir" && private /var/lib/kubeone/step || exit 73

field() { sed -n "s/^$1=//p" "$dir/owner" 2>/dev/null || true; }

alive() {
	[ -f "$dir/beat" ] && [ $(($(date +%s) - $(stat -c %Y "$dir/beat"))) -lt "$stale" ]
}

# held succeeds when another run has the lock, is alive, and is not to be pushed aside.
held() { alive && [ "$(field run)" != "$run" ] && [ "$force" != yes ]; }

latest() { cat "$dir/generation" 2>/dev/null || echo 0; }

# next is one more than the latest, and no less than the clock: a machine that replaced another must not count again what
# runs had on the one before.
next() {
	new=$(($(latest) + 1))
	now=$(date +%s)
	[ "$new" -gt "$now" ] || new=$now
	printf '%s\n' "$new"
}

# put writes standard input to a file beside the one that it is to become. A full disk must not leave half of a lock.
put() {
	cat >"$dir/$1.new" && return
	rm -f "$dir/$1.new"
	exit 73
}

beat() { true >"$dir/beat" || exit 73; }

take() {
	generation=$ours
	[ "$ours" != 0 ] || generation=$(next)
	printf '%s\n' "$generation" | put generation
	printf 'holder=%s\nrun=%s\ngeneration=%s\nsince=%s\nkeeper=%s\n' "$holder" "$run" "$generation" "$(date +%s)" "$$" | put owner
	beat
	mv -f "$dir/generation.new" "$dir/generation"
	mv -f "$dir/owner.new" "$dir/owner"
	# What an earlier run's step did not live to remove; a step that runs right now keeps its own. Nor are secrets old where a
	# lock is kept on: they may be those of the step that this run is just starting.
	[ "$ours" != 0 ] || systemctl is-active --quiet kubeone-step.service || rm -rf /run/kubeone/secrets
	printf 'granted %s\n' "$generation"
}

true >>"$dir/flock" || exit 73
lock_file "$dir/flock" "$PATIENCE" || exit 80
if held || { [ "$ours" != 0 ] && [ "$(latest)" != "$ours" ]; }; then
	printf 'held\n'
	cat "$dir/owner" 2>/dev/null || true
	exit 0
fi
take
flock -u 9

while IFS= read -r _; do
	[ "$(field keeper)" = "$$" ] || exit 0
	beat
done

lock_file "$dir/flock" "$PATIENCE" || exit 80
[ "$(field keeper)" != "$$" ] || rm -f "$dir/beat" "$dir/owner"
