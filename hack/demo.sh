#!/bin/sh
# Runs the demo: hosts in containers, and a highly available cluster on them. It replaces an earlier demo, and stays up
# until it is taken down. It needs Debian, Go and root; the lab installs what else is missing.
#
# Environment: KUBEONE_LAB_CACHE and KUBEONE_LAB_STATE, directories of the lab; both have defaults.
set -eu
cd "$(dirname "$0")/.."

name=demo
# An older patch release, so that there is one to upgrade to.
version=1.36.1
newer=1.36.3
cache=${KUBEONE_LAB_CACHE:-$HOME/.cache/kubeone-lab}
state=${KUBEONE_LAB_STATE:-$cache/state}/$name
times=

now() { date +%s; }

# part TITLE COMMAND... runs one part of the demo and records how long it took.
part() {
	title=$1
	shift
	printf '\n=== %s\n' "$title"
	began=$(now)
	"$@"
	times="$times$(printf '%5s s  %s' "$(($(now) - began))" "$title")
"
}

build() {
	[ -x bin/kubeone ] || echo "The first build compiles the Kubernetes client libraries: some minutes."
	make --no-print-directory build
	hack/heartbeat.sh "building the lab" go build -o bin/lab ./test/lab
}

hosts() {
	[ ! -d "$state" ] || {
		echo "removing the demo that was there"
		bin/lab down --name "$name"
	}
	[ -d "$cache/bundles" ] || echo "The first run builds Kubernetes from source, and a Debian for the hosts.
This takes about 10 minutes on 2 cores."
	bin/lab up --name "$name" --control-planes 3 --workers 1 --kubernetes-version "$version"
}

[ "$(id -u)" = 0 ] || {
	echo "the demo starts containers that boot systemd: run it as root" >&2
	exit 1
}

part "build kubeone and the lab" build
part "three control-plane hosts, a worker, a load balancer; a bundle with Kubernetes" hosts
part "kubeone apply: bare hosts to a cluster" \
	bin/kubeone apply -m "$state/kubeone.yaml" --bundle "$state/bundle.tar" --auto-approve
part "kubeone plan: nothing is left to do" bin/kubeone plan -m "$state/kubeone.yaml" --bundle "$state/bundle.tar"
part "kubeone status" bin/kubeone status -m "$state/kubeone.yaml"
bin/kubeone kubeconfig -m "$state/kubeone.yaml" -f "$state/kubeconfig" >/dev/null

kubectl() {
	if command -v kubectl >/dev/null 2>&1; then
		command kubectl --kubeconfig "$state/kubeconfig" "$@"
	else
		bin/lab ssh "$name-cp-1" -- /opt/kubeone/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"
	fi
}

printf '\n=== the nodes\n'
kubectl get nodes -o wide
printf '\n=== where the time went\n%s' "$times"

if command -v kubectl >/dev/null 2>&1; then
	pods="export KUBECONFIG=$state/kubeconfig; kubectl get pods -A"
else
	pods="bin/lab ssh $name-cp-1 -- /opt/kubeone/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf get pods -A"
fi
manifest="-m $state/kubeone.yaml"
bundle="--bundle $state/bundle.tar"
cat <<TEXT

Look around:
    $pods
    bin/kubeone status $manifest

What to try next, each a line to paste:
  a control-plane host hangs: what the plan says of it
    bin/lab pause $name-cp-2; bin/kubeone plan $manifest; bin/lab unpause $name-cp-2
  one more worker: a bare host that the manifest names from now on
    bin/lab add --name $name && bin/kubeone apply $manifest $bundle
  an upgrade to Kubernetes $newer, host by host (the first time, $newer is built: some minutes)
    bin/lab want $newer --name $name && bin/kubeone apply $manifest $bundle

Take it down:
    bin/lab down --name $name
TEXT
