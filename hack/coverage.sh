#!/bin/sh
# Reads what `go test -cover` prints, shows the coverage of each package, and fails when one is below the argument (in
# per cent), failed, or has no tests.
set -eu
awk -v least="$1" '
	/^(FAIL|---|panic)/ || /no test files/ { print; bad = 1; next }
	match($0, /coverage: [0-9.]+%/) {
		covered = substr($0, RSTART + 10, RLENGTH - 11) + 0
		name = ($1 == "ok") ? $2 : $1
		ok = covered >= least && $1 == "ok"
		printf "%-28s %5.1f %% %s\n", name, covered, ok ? "" : "<- must be " least " %"
		if (!ok) bad = 1
		seen++
		next
	}
	{ print }
	END { exit bad || !seen }
'
