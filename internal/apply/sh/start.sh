# Starts one stage of this host's script as a transient unit, or finds it running or finished, and follows it to its end.
# Arguments: GENERATION RUN STEP STAGE. Exit status: the stage's; 75 the lock is another's now; 76 another step runs.
set -eu
generation=$1 run=$2 step=$3 stage=$4
dir=/var/lib/kubeone/step
unit=kubeone-step.service

field() { sed -n "s/^$2=//p" "$dir/$1" 2>/dev/null || true; }

locked() { [ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" = "$generation" ]; }

ours() { [ "$(field "$1" run)" = "$run" ] && [ "$(field "$1" step)" = "$step" ]; }

if systemctl is-active --quiet "$unit"; then
	ours current || {
		printf 'step %s of run %s is running\n' "$(field current step)" "$(field current run)" >&2
		exit 76
	}
elif ours result; then
	! locked || rm -rf /run/kubeone/secrets # they came again for a step that had ended
else
	locked || exit 75
	rm -f "$dir/result" "$dir/log"
	(umask 077 && : >"$dir/log")
	printf 'run=%s\nstage=%s\nstep=%s\n' "$run" "$stage" "$step" >"$dir/current"
	systemd-run --quiet --collect --unit="$unit" --property=Type=exec --property=TimeoutStopSec=5 --property=RuntimeMaxSec=7200 \
		--setenv=KUBEONE_RUN="$run" /bin/sh "$dir/run.sh" "$generation" "$run" "$step" "$stage"
fi
