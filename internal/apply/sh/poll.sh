# Says how far the latest step of a run is on this host, and prints what the step that is asked about has printed.
# Arguments: GENERATION RUN STEP. Prints "step=ID" of the latest on standard error. Exit status: the step's, if it has ended;
# 77 it runs; 76 a step of another run runs; 78 it was killed, or the host was; 79 the run has begun no step here; 80 see alone.
set -eu
generation=$1 run=$2 asked=$3
dir=/var/lib/kubeone/step

field() { sed -n "s/^$2=//p" "$dir/$1" 2>/dev/null || true; }

alone
rc=
! systemctl is-active --quiet kubeone-step.service || rc=77
[ "$(field current run)" = "$run" ] || {
	[ -z "$rc" ] || {
		printf 'step %s of run %s is running\n' "$(field current step)" "$(field current run)" >&2
		exit 76
	}
	exit 79
}
step=$(field current step)
printf 'step=%s\n' "$step" >&2
[ -n "$rc" ] || [ "$(field result run)" != "$run" ] || [ "$(field result step)" != "$step" ] || rc=$(field result rc)
[ "$step" != "$asked" ] || cat "$dir/log"
[ -n "$rc" ] || killed
exit "$rc"
