# Starts one stage of this host's script as a transient unit, or finds it running or finished, and follows it to its end.
# Arguments: GENERATION RUN STEP STAGE. Standard input: what the stage may know and nobody else, each file a line, its name
# and its content in base64; "." is the last line. Exit status: the stage's; 75 the lock is another's now; 76 another step
# runs; 80 another process has locked the file by which attempts exclude one another.
set -eu
umask 077
generation=$1 run=$2 step=$3 stage=$4
dir=/var/lib/kubeone/step
secrets=/run/kubeone/secrets
unit=kubeone-step.service

field() { sed -n "s/^$2=//p" "$dir/$1" 2>/dev/null || true; }

locked() { [ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" = "$generation" ]; }

ours() { [ "$(field "$1" run)" = "$run" ] && [ "$(field "$1" step)" = "$step" ]; }

# receive writes the secrets where only root reads them, and then whose they are. Without the last line they are not all: a
# stage that found none would take it that there are none.
receive() {
	rm -rf "$secrets" && private "${secrets%/*}" && mkdir "$secrets" || return 1
	while read -r name content; do
		[ "$name" != . ] || {
			printf '%s %s\n' "$run" "$step" >"$secrets/.of"
			return
		}
		printf '%s' "$content" | base64 -d >"$secrets/$name" || return 1
	done
	return 1
}

# unused removes the secrets of a step that could not be started.
unused() { systemctl is-active --quiet "$unit" || rm -rf "$secrets"; }

brought=$(cat) # before anybody has to wait for this attempt: its connection may be lost
lock_file "$dir/flock" "$PATIENCE" || exit 80 # another attempt, whose connection was lost, may still be at it
if systemctl is-active --quiet "$unit"; then
	ours current || {
		printf 'step %s of run %s is running\n' "$(field current step)" "$(field current run)" >&2
		exit 76
	}
elif ! ours result; then
	locked || exit 75
	trap unused EXIT
	printf '%s\n' "$brought" | receive || {
		printf 'the secrets of step %s did not arrive whole, or could not be written; it was not started\n' "$step" >&2
		exit 1
	}
	rm -f "$dir/result" "$dir/log"
	: >"$dir/log"
	printf 'run=%s\nstage=%s\nstep=%s\n' "$run" "$stage" "$step" >"$dir/current"
	systemd-run --quiet --collect --unit="$unit" --property=Type=exec --property=TimeoutStopSec=5 --property=RuntimeMaxSec=7200 \
		--setenv=KUBEONE_RUN="$run" /bin/sh "$dir/run.sh" "$generation" "$run" "$step" "$stage"
	trap - EXIT
fi
flock -u 9
