#!/bin/sh
# Runs a command and says on standard error, every 10 seconds, that it still runs and for how long.
# Arguments: WHAT COMMAND [ARGUMENT...], where WHAT is what a reader calls it.
#
# The command takes this shell's place, so that its exit status, its standard streams and every signal are its own. The
# process beside it ends within a second of it.
set -eu
what=$1
shift
(
	exec </dev/null >/dev/null
	began=$(date +%s)
	said=0
	while sleep 1 && kill -0 $$ 2>/dev/null; do
		elapsed=$(($(date +%s) - began))
		[ "$elapsed" -lt "$((said + 10))" ] || {
			said=$elapsed
			echo "  $what: $elapsed s so far" >&2
		}
	done
) &
exec "$@"
