# Unpacks a tar of files that are named after their digests from standard input.
#
#	$1  directory for the files
set -eu
mkdir -p "$1"
tmp=$(mktemp -d "$1/.incoming.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
tar -xf - -C "$tmp" --no-same-owner
for f in "$tmp"/*; do [ ! -f "$f" ] || mv -f "$f" "$1/"; done
