#!/bin/sh
# Reads the output of `go test -cover`. It fails if a test has failed, or if the coverage of a package is too low.
#
#	$1    least coverage in per cent
#	$2... packages, as paths below the module's directory: ./internal/plan
set -eu
least=$1
shift
awk -v least="$least" -v covered="$*" '
	BEGIN { n = split(covered, names, " "); for (i = 1; i <= n; i++) must["kubeone" substr(names[i], 2)] = 1 }
	/^(FAIL|---|panic)/ { print; bad = 1; next }
	/^ok/ && ($2 in must) && match($0, /coverage: [0-9.]+%/) {
		share = substr($0, RSTART + 10, RLENGTH - 11) + 0
		note = ""
		if (share < least) { note = "<- must be " least " %"; bad = 1 }
		printf "%-34s %5.1f %% %s\n", $2, share, note
		delete must[$2]
		next
	}
	/^ok/ { print $1, $2, $3; next }
	/no test files|coverage: 0.0%/ { next }
	{ print }
	END {
		for (name in must) { print name ": its coverage is not known"; bad = 1 }
		exit bad
	}
'
