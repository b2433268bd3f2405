#!/bin/sh
# Installs the Debian packages of missing programs. Arguments: PROGRAM=PACKAGE ..., where PROGRAM is a name in PATH or
# an absolute path.
set -eu
missing=
for pair in "$@"; do
	program=${pair%%=*}
	case $program in
	/*) [ -e "$program" ] && continue ;;
	*) command -v "$program" >/dev/null 2>&1 && continue ;;
	esac
	missing="$missing ${pair#*=}"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing"
install() {
	# shellcheck disable=SC2086 # a list
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing </dev/null
}
command -v apt-get >/dev/null 2>&1 || {
	echo "this is not a Debian; install these yourself:$missing" >&2
	exit 1
}
install || {
	apt-get update -q
	install
}
