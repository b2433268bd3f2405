#!/bin/sh
# Runs inside the transient unit: one stage of node.sh, if the lock is still the one it was started under.
# Arguments: GENERATION RUN STEP STAGE.
set -u
dir=/var/lib/kubeone/step
rc=75
if [ "$(cat /run/kubeone/secrets/.of 2>/dev/null)" != "$2 $3" ]; then
	rc=1
	printf 'the secrets of this step are gone, and it was not begun\n' >>"$dir/log"
elif [ "$(cat /var/lib/kubeone/lock/generation 2>/dev/null)" = "$1" ]; then
	rc=0
	sh "$dir/node.sh" "$4" >>"$dir/log" 2>&1 || rc=$?
fi
rm -rf /run/kubeone/secrets
umask 077
printf 'run=%s\nstep=%s\nrc=%s\n' "$2" "$3" "$rc" >"$dir/result.new"
mv -f "$dir/result.new" "$dir/result"
