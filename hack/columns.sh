#!/bin/sh
# Checks that lines have at most 120 columns: in shell files all of them, in prose all but tables, code, and lines that
# are one long word, such as a URL. golangci-lint (lll) checks Go.
set -eu
cd "$(dirname "$0")/.."
git ls-files '*.md' '*.sh' .ci/run | {
	status=0
	while read -r file; do
		case $file in
		# Exempt lines become empty lines, so that the line numbers stay.
		*.md) awk '/^ *(```|~~~)/ { code = !code } code || /^ *\|/ || !/[^ ] +[^ ]/ { print ""; next } { print }' "$file" ;;
		*) cat "$file" ;;
		esac | LC_ALL=C.UTF-8 grep -nE '^.{121,}$' | sed "s|^|$file:|" | grep . && status=1
	done
	[ "$status" = 0 ] || echo "wrap these lines at 120 columns" >&2
	exit "$status"
}
