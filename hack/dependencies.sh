#!/bin/sh
# Checks that docs/dependencies.md lists exactly the direct dependencies of go.mod.
set -eu
cd "$(dirname "$0")/.."
direct=$(awk '/^require \(/ { on = 1; next } /^\)/ { on = 0 } on && !/\/\/ indirect/ { print $1 }' go.mod | sort)
# shellcheck disable=SC2016 # backquotes of the document
named=$(sed -n 's/^| `\([^`]*\)` |.*/\1/p' docs/dependencies.md | sort)
[ "$direct" = "$named" ] && exit 0
echo "docs/dependencies.md and go.mod differ:" >&2
for d in $direct; do echo "$named" | grep -qxF "$d" || echo "  not in docs/dependencies.md: $d" >&2; done
for n in $named; do echo "$direct" | grep -qxF "$n" || echo "  not in go.mod: $n" >&2; done
exit 1
