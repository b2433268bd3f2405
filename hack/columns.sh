#!/bin/sh
# Prose has lines of at most 120 columns, apart from tables, code, and lines that are one long word, such as a URL. Go's
# lines are held by golangci-lint (lll).
set -eu
cd "$(dirname "$0")/.."
git ls-files '*.md' | {
	status=0
	while read -r file; do
		# What is apart becomes an empty line, so that the numbers stay.
		awk '/^ *(```|~~~)/ { code = !code } code || /^ *\|/ || !/[^ ] +[^ ]/ { print ""; next } { print }' "$file" |
			LC_ALL=C.UTF-8 grep -nE '^.{121,}$' | sed "s|^|$file:|" | grep . && status=1
	done
	[ "$status" = 0 ] || echo "wrap these lines at 120 columns" >&2
	exit "$status"
}
