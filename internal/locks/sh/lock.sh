# Takes the host's lock, and keeps it while standard input brings a line every few seconds.
#
#	$1  holder
#	$2  ID of the run
#	$3  yes|no: take the lock even if another run holds it
#	$4  seconds without a heartbeat after which a lock is stale
#	$5  generation: 0 for a new lock. Otherwise, that of a lock whose connection broke: keep it, unless another run has
#	    taken it since.
#
# PATIENCE is set by WithFile: seconds to wait for the lock file.
#
# Output: "granted GENERATION", or "held" and the lines of the owner's file. Exit status: 73 if nothing can be written
# here; then no lock is taken, and nothing has changed. 80 if another process holds the lock file.
set -eu
umask 077
holder=$1 run=$2 force=$3 stale=$4 ours=$5
dir=/var/lib/kubeone/lock
own_directory && private "$dir" && private /var/lib/kubeone/step || exit 73

# field NAME prints a value of the owner's file.
field() { sed -n "s/^$1=//p" "$dir/owner" 2>/dev/null || true; }

alive() {
	[ -f "$dir/beat" ] && [ $(($(date +%s) - $(stat -c %Y "$dir/beat"))) -lt "$stale" ]
}

# held succeeds if another run has a fresh lock, and this run may not take it.
held() { alive && [ "$(field run)" != "$run" ] && [ "$force" != yes ]; }

latest() { cat "$dir/generation" 2>/dev/null || echo 0; }

# next prints the new generation: more than the latest, and at least the clock's seconds. A machine that replaces
# another must not reuse generations that runs had on the former one.
next() {
	new=$(($(latest) + 1))
	now=$(date +%s)
	[ "$new" -gt "$now" ] || new=$now
	printf '%s\n' "$new"
}

# put FILE writes standard input to FILE.new, so that a full disk never leaves half of a lock.
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
	printf 'holder=%s\nrun=%s\ngeneration=%s\nsince=%s\nkeeper=%s\n' \
		"$holder" "$run" "$generation" "$(date +%s)" "$$" | put owner
	beat
	mv -f "$dir/generation.new" "$dir/generation"
	mv -f "$dir/owner.new" "$dir/owner"
	# Remove secrets that a killed step has left, but not those of a running step. If the lock is kept, they may be those
	# of the step that this run is about to start.
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
