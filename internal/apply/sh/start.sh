# Starts a stage of this host's script in a transient unit, or finds it running or finished, and follows it to its end.
#
#	$1  generation of the lock
#	$2  ID of the run
#	$3  ID of the step
#	$4  stage
#
# Standard input has the step's secrets: for each file a line of its name and its content in base64. The last line is
# ".". PATIENCE is set by locks.WithFile: seconds to wait for the lock file.
#
# Exit status: that of the stage; 75 if another run has taken the lock; 76 if another step is running; 80 if another
# process holds the lock file.
set -eu
umask 077
generation=$1 run=$2 step=$3 stage=$4
dir=/var/lib/kubeone/step
secrets=/run/kubeone/secrets
unit=kubeone-step.service

# field FILE NAME prints a value of a file of NAME=VALUE lines.
field() { sed -n "s/^$2=//p" "$dir/$1" 2>/dev/null || true; }

locked() { [ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" = "$generation" ]; }

# ours FILE succeeds if the file is of this step of this run.
ours() { [ "$(field "$1" run)" = "$run" ] && [ "$(field "$1" step)" = "$step" ]; }

# receive writes the secrets to files that only root can read, and then the file .of, which says whose they are. It
# fails without the last line: a stage that finds no secrets would assume that there are none.
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

# unused removes the secrets of a step that did not start.
unused() { systemctl is-active --quiet "$unit" || rm -rf "$secrets"; }

received=$(cat) # before waiting for the lock file: the connection may break meanwhile
lock_file "$dir/flock" "$PATIENCE" || exit 80 # an attempt whose connection broke may still hold it
if systemctl is-active --quiet "$unit"; then
	ours current || {
		printf 'step %s of run %s is running\n' "$(field current step)" "$(field current run)" >&2
		exit 76
	}
elif ! ours result; then
	locked || exit 75
	trap unused EXIT
	printf '%s\n' "$received" | receive || {
		printf 'the secrets of step %s did not arrive whole, or could not be written; it was not started\n' "$step" >&2
		exit 1
	}
	rm -f "$dir/result" "$dir/log"
	: >"$dir/log"
	printf 'run=%s\nstage=%s\nstep=%s\n' "$run" "$stage" "$step" >"$dir/current"
	systemd-run --quiet --collect --unit="$unit" \
		--property=Type=exec --property=TimeoutStopSec=5 --property=RuntimeMaxSec=7200 \
		--setenv=KUBEONE_RUN="$run" /bin/sh "$dir/run.sh" "$generation" "$run" "$step" "$stage"
	trap - EXIT
fi
flock -u 9
