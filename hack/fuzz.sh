#!/bin/sh
# Runs every fuzz test of the repository, one after the other, each in one process.
#
#	$1  duration of each, such as 10m
set -eu
cd "$(dirname "$0")/.."
time=$1
git grep -oE '^func Fuzz[A-Za-z]*' -- '*_test.go' | {
	status=0
	while IFS=: read -r file name; do
		name=${name#func }
		echo "== ${file%/*}: $name"
		go test "./${file%/*}" -run '^$' -fuzz "^$name\$" -fuzztime "$time" -parallel 1 -fuzzminimizetime 5x </dev/null ||
			status=1
	done
	exit "$status"
}
