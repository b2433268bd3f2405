#!/bin/bash
# What the scripts of an operator without a program of its own share: one multiplexed ssh connection for each host, with
# a cipher that the processor knows. Sourced, not run.
#
# The environment says where: CONTROL_PLANE_HOSTS and WORKER_HOSTS (addresses), SSH_USER, SSH_KEY, KNOWN_HOSTS, and RELEASE
# (the folder that bench fills: binaries, images-ROLE.tar, SHA256SUMS-ROLE, flannel.yaml).
# shellcheck disable=SC2034 # the scripts use what is set here
set -euo pipefail

control=$(mktemp -d)
options=(
	-i "$SSH_KEY" -o IdentitiesOnly=yes -o UserKnownHostsFile="$KNOWN_HOSTS" -o StrictHostKeyChecking=yes -o LogLevel=ERROR
	-o Ciphers=aes128-gcm@openssh.com -o ControlMaster=auto -o ControlPath="$control/%C" -o ControlPersist=60
)
read -ra control_planes <<<"$CONTROL_PLANE_HOSTS"
read -ra workers <<<"$WORKER_HOSTS"
leader=${control_planes[0]}
kubectl="kubectl --kubeconfig /etc/kubernetes/admin.conf" # its server is the load balancer
ignore=--ignore-preflight-errors=SystemVerification # the lab's hosts have control groups v1

finish() {
	for host in "${control_planes[@]}" "${workers[@]}"; do
		ssh "${options[@]}" -O exit "$SSH_USER@$host" 2>/dev/null || true
	done
	rm -rf "$control"
}
trap finish EXIT

# stage NAME [HOST] says what begins.
stage() { printf 'stage %s %s\n' "$1" "${2:-$leader}"; }

# on HOST COMMAND runs a command line on a host.
# shellcheck disable=SC2029 # what the command is, is known here
on() { ssh "${options[@]}" "$SSH_USER@$1" "$2"; }

# copy HOST ROLE sends what hosts of the role need.
copy() {
	local files=()
	while read -r _ name; do files+=("$RELEASE/$name"); done <"$RELEASE/SHA256SUMS-$2"
	on "$1" 'mkdir -p release'
	scp -q "${options[@]}" "${files[@]}" "$RELEASE/SHA256SUMS-$2" "$SSH_USER@$1:release/"
}

import_images() { on "$1" "ctr -n k8s.io images import release/images-$2.tar >/dev/null"; }
