#!/bin/sh
# Checks every shell script of the tree: by its first line's shell, or, where it has none, as the part of a POSIX script that it
# is. A part may set what only another part reads (SC2034); tests check what the parts make together.
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
