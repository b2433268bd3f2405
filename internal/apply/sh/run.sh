#!/bin/sh
# Runs in the transient unit kubeone-step.service: runs one stage of node.sh, if the lock's generation is still the
# same.
#
#	$1  generation of the lock
#	$2  ID of the run
#	$3  ID of the step
#	$4  stage
set -u
dir=/var/lib/kubeone/step
rc=75 # another run has taken the lock
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
