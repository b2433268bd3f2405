#!/bin/sh
# Generates code from the types of the APIs: deep copies in Go, and CustomResourceDefinitions in YAML.
#
#	$1  path of controller-gen
#	$2  optional: --check changes nothing, and fails if a generated file is out of date
set -eu
cd "$(dirname "$0")/.."
generator=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for api in api/cluster/v1alpha1 api/kubeone/v1alpha1; do
	rm -rf "${out:?}"/*
	"$generator" object crd:crdVersions=v1 paths=./$api output:object:dir="$out" output:crd:dir="$out/crds"
	if [ "${2-}" = --check ]; then
		for file in "$out"/zz_generated.deepcopy.go "$out"/crds/*.yaml; do
			cmp -s "$file" "$api/${file#"$out"/}" || { echo "$api/${file#"$out"/} is out of date: make generate" >&2; exit 1; }
		done
		continue
	fi
	rm -f $api/crds/*.yaml
	cp "$out"/zz_generated.deepcopy.go $api/
	cp "$out"/crds/*.yaml $api/crds/
done
