#!/bin/sh
# Runs shellcheck on every shell file. A file without a #! line is a part of a POSIX script. It may set variables that
# only another part reads (SC2034); tests check the assembled scripts.
set -eu
cd "$(dirname "$0")/.."
find . -name '*.sh' -not -path './.git/*' >"${TMPDIR:-/tmp}/kubeone-scripts.$$"
trap 'rm -f "${TMPDIR:-/tmp}/kubeone-scripts.$$"' EXIT
status=0
while read -r script; do
	read -r first <"$script"
	case $first in
	'#!'*) shellcheck "$script" || status=1 ;;
	*) shellcheck --shell=sh --exclude=SC2034 "$script" || status=1 ;;
	esac
done <"${TMPDIR:-/tmp}/kubeone-scripts.$$"
shellcheck .ci/run || status=1
exit "$status"
