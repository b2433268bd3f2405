#!/bin/sh
# Runs a command, and prints every 10 seconds to standard error how long it has been running.
#
#	$1    name of the work, for the reader
#	$2... command
#
# The command replaces this shell, so that exit status, standard streams and signals are its own. The background process
# ends within a second after it.
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
