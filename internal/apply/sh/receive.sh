# Unpacks a tar of content-addressed files from standard input. Argument: the directory they belong in.
set -eu
mkdir -p "$1"
tmp=$(mktemp -d "$1/.incoming.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
tar -xf - -C "$tmp" --no-same-owner
for f in "$tmp"/*; do [ ! -f "$f" ] || mv -f "$f" "$1/"; done
