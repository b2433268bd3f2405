package hostile

import (
	"fmt"
	"slices"
	"strings"
)

// allAttempts returns all attempts.
func allAttempts() []attempt {
	return slices.Concat(identityAttempts(), nameClaims(), powerAttempts(), credentialAttempts(), numberAttempts(),
		textAttempts(), framingAttempts(), connectionAttempts(),
		objectsOfItsOwn(), versionAttempts())
}

// Roles of the attacker.
var (
	asWorker  = []role{worker}
	everybody = []role{worker, firstContact, controlPlane}
)

// markerLines returns lines as a kubeone marker.
func markerLines(lines ...string) []string {
	out := []string{"-file\t/etc/kubeone/marker:", "-absent\t/etc/kubeone/marker", "exists\t/etc/kubeone/marker"}
	for _, line := range lines {
		out = append(out, "file\t/etc/kubeone/marker:"+line)
	}
	return out
}

func memberLines(lines ...string) []string {
	return markerLines(append([]string{"cluster=demo", "role=worker", "complete=yes"}, lines...)...)
}

// identityAttempts returns attempts to impersonate another host.
func identityAttempts() []attempt {
	marked := func(name string, as []role, who string) attempt {
		return attempt{name: name, as: as, says: func(g *trial) []string {
			return editLines(g.honestAnswer(), memberLines("id="+g.hostID(who))...)
		}}
	}
	called := func(name, hostname string, as ...role) attempt {
		return attempt{name: name, as: as, says: addLines("-hostname", "hostname\t"+hostname)}
	}
	return []attempt{
		called("the name of a control-plane host", "cp-1", everybody...),
		called("the name of a healthy worker, in capitals", "W-3", everybody...),
		{name: "the name of the worker that joins", as: asWorker, says: addLines("-hostname", "hostname\tw-1"),
			except: []string{"w-1"}},
		called("a path as its name", "../../../etc/cron.d/x", everybody...),
		called("a command as its name", "$(reboot);`reboot`", everybody...),
		called("a name of 100,000 letters", strings.Repeat("a", 100_000), everybody...),
		called("no name", "", everybody...),
		{name: "the machine ID of a control-plane host", as: everybody, says: func(g *trial) []string {
			return editLines(g.honestAnswer(), "-machine-id", "machine-id\t"+machineID("10.0.0.11"))
		}},
		{name: "the addresses of others, and the API's", as: everybody, says: addLines(
			"address\t2: eth0    inet 10.0.0.11/24 scope global eth0",
			"address\t2: eth0    inet 10.0.0.23/24 scope global eth0",
			"address\t2: eth0    inet "+endpointHost+"/8 scope global eth0",
			"address\t2: eth0    inet 10.96.0.1/24 scope global eth0")},
		marked("a marker with the ID of a healthy worker", asWorker, "w-3"),
		{name: "a marker with the ID of a control-plane host", as: asWorker, says: func(g *trial) []string {
			return editLines(g.honestAnswer(), memberLines("id="+g.hostID("cp-1"))...)
		}},
		{name: "a marker with another's Node", as: []role{worker, firstContact},
			says: addLines(memberLines("node=w-3")...)},
		{name: "a marker with a control-plane host's Node", as: asWorker, says: addLines(memberLines("node=cp-2")...)},
		{name: "a marker of another cluster", as: asWorker,
			says: addLines(markerLines("cluster=prod", "role=worker", "complete=yes")...)},
		{name: "a marker of another cluster, before approval", as: []role{firstContact},
			says: addLines(markerLines("cluster=prod", "role=worker", "complete=yes")...)},
		{name: "a control plane of another cluster", as: []role{controlPlane},
			says: addLines(markerLines("cluster=prod", "role=control-plane", "complete=yes")...)},
		{name: "a marker that says everything twice, each time otherwise", as: everybody, says: addLines(markerLines(
			"cluster=prod", "cluster=demo", "role=control-plane", "role=worker", "complete=no", "complete=no",
			"id=somebody", "id=")...)},
		{name: "an empty marker", as: asWorker, says: addLines(markerLines()...)},
		{name: "a CA of its own", as: []role{worker, firstContact}, says: ownCA},
		{name: "a control plane with a CA of its own", as: []role{controlPlane}, says: func(g *trial) []string {
			return editLines(ownCA(g), append(markerLines("cluster=demo", "role=control-plane", "complete=yes"),
				"-absent\t/etc/kubernetes/pki", "exists\t/etc/kubernetes/pki/ca.key")...)
		}},
	}
}

func ownCA(g *trial) []string {
	return append(editLines(g.honestAnswer(), "-pem\t"), certificateLines("/etc/kubernetes/pki/ca.crt", otherCA)...)
}

func manifestLines(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "manifest\t/etc/kubernetes/manifests/"+name+".yaml")
	}
	return out
}

// powerAttempts returns attempts to gain influence beyond the host's role.
func powerAttempts() []attempt {
	all := manifestLines("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	healthy := append(all, "-absent", "exists\t/etc/kubernetes/kubelet.conf", "exists\t/var/lib/etcd/member",
		"exists\t/etc/kubernetes/admin.conf", "exists\t/etc/kubernetes/pki/ca.key", "health\tetcd 200",
		"health\tapiserver 200", "health\tcontroller-manager 200", "health\tscheduler 200")
	joined := slices.Concat(markerLines("cluster=demo", "role=control-plane", "complete=yes"), healthy)
	recovering := func(lines ...string) []string {
		return markerLines(append([]string{"cluster=demo", "role=control-plane", "complete=no"}, lines...)...)
	}
	return []attempt{
		{name: "a member of etcd: its data and its static pod", as: asWorker,
			says: addLines(append(manifestLines("etcd"), "-absent\t/var/lib/etcd", "exists\t/var/lib/etcd/member")...)},
		{name: "a whole control plane that is well", as: asWorker, says: addLines(healthy...)},
		{name: "the same with a marker that says so", as: asWorker, says: addLines(joined...)},
		{name: "a member of the control plane that nobody knows", as: []role{controlPlane},
			says: addLines(joined...)},
		{name: "a later life of the cluster: epoch 999999", as: everybody,
			says: addLines(markerLines("cluster=demo", "role=control-plane", "complete=yes", "epoch=999999")...)},
		{name: "a recovery that has begun, of epoch 999999", as: []role{controlPlane},
			says: addLines(recovering("epoch=999999")...)},
		{name: "an epoch below zero", as: asWorker, says: addLines(memberLines("epoch=-9223372036854775808")...)},
		{name: "a recovery that has fenced it", as: asWorker, says: addLines(recovering("fenced=run-1")...)},
		{name: "a recovery that restores on it", as: asWorker,
			says: addLines(recovering("fenced=run-1", "restoring=yes", "epoch=7")...)},
		{name: "a recovery, on a host to join", as: []role{controlPlane},
			says: addLines(recovering("fenced=run-1", "restoring=yes", "epoch=7")...)},
		{name: "etcd's data lost", as: everybody, says: addLines("etcd-lost\tcrc mismatch")},
		{name: "an upgrade of its own to 99.1.2", as: asWorker,
			says: addLines("file\t/var/lib/kubeone/upgrading:99.1.2")},
		{name: "the lock of another run, of a generation that no other can exceed", as: asWorker,
			says: addLines(lockLines(
				"holder=mallory@desk", "run=run-9", "generation=9223372036854775807")...)},
		{name: "a lock since the year 36812", as: everybody,
			says: addLines(lockLines("holder=mallory@desk", "run=run-9", "generation=1", "since=1099511627776")...)},
		{name: "a step that runs without an end", as: asWorker, says: addLines(
			"-unit\tId=kubeone-step", "unit\t", "unit\tId=kubeone-step.service", "unit\tLoadState=loaded",
			"unit\tActiveState=active", "unit\tSubState=running", "unit\t",
			"file\t/var/lib/kubeone/step/current:run=run-9", "file\t/var/lib/kubeone/step/current:stage=upgrade")},
		{name: "unfit: an unknown system, no processor, no memory, no disk", as: []role{worker, firstContact},
			says: addLines("-file\t/etc/os-release", "file\t/etc/os-release:ID=plan9", "-cpus", "cpus\t0", "-memory",
				"-disk")},
		{name: "unfit, as a control plane", as: []role{controlPlane},
			says: addLines("-file\t/etc/os-release", "file\t/etc/os-release:ID=plan9")},
		{name: "a read-only disk", as: asWorker, says: addLines("unwritable\tyes")},
		{name: "kubelet.conf gone, to be given a token", as: asWorker, says: addLines(
			"-exists\t/etc/kubernetes/kubelet.conf", "absent\t/etc/kubernetes/kubelet.conf")},
		{name: "bare again, under a control-plane host's name", as: asWorker, idle: true,
			says: addLines(append(bareEdits(), "-hostname", "hostname\tcp-1")...)},
		{name: "a kubelet.conf of another server, and one that runs a program", as: asWorker, says: addLines(
			"-yaml", "yaml\t/etc/kubernetes/kubelet.conf:    server: https://evil.example.com:6443",
			"yaml\t/etc/kubernetes/kubelet.conf:    exec: {command: /bin/sh}")},
	}
}

func lockLines(lines ...string) []string {
	out := []string{"-absent\t/var/lib/kubeone/lock", "exists\t/var/lib/kubeone/lock/owner", "beat\t1800000000"}
	for _, line := range lines {
		out = append(out, "file\t/var/lib/kubeone/lock/owner:"+line)
	}
	return out
}

// credentialAttempts returns attempts to impersonate the cluster's API and etcd.
func credentialAttempts() []attempt {
	etcds := []string{"health\tetcd 200", "health\tapiserver 200"}
	return []attempt{
		{name: "credentials that nobody asked for: an admin.conf of its own", as: everybody,
			says: func(g *trial) []string {
				return slices.Concat(g.honestAnswer(), secretLines("/etc/kubernetes/admin.conf", g.secret), etcds,
					[]string{"access\t1"})
			}},
		{name: "the same, first of all and at once", as: everybody, says: func(g *trial) []string {
			return slices.Concat(secretLines("/etc/kubernetes/admin.conf", g.secret), []string{"access\t1"},
				g.honestAnswer())
		}},
		{name: "certificates and a key of an etcd of its own", as: everybody, says: func(g *trial) []string {
			creds := g.cluster.etcd.Access().Credentials
			return slices.Concat(editLines(g.honestAnswer(), "-pem\t"),
				certificateLines("/etc/kubernetes/pki/etcd/ca.crt", creds.CA),
				certificateLines("/etc/kubernetes/pki/apiserver-etcd-client.crt", creds.Cert),
				secretLines("/etc/kubernetes/pki/apiserver-etcd-client.key", string(creds.Key)), []string{"access\t1"})
		}},
		{name: "an admin.conf that runs a program here", as: everybody, says: func(g *trial) []string {
			return append(g.honestAnswer(), secretLines("/etc/kubernetes/admin.conf",
				strings.Replace(g.secret, "token: "+token,
					"exec: {command: /bin/sh, args: [-c, 'touch owned']}", 1))...)
		}},
		{name: "an API server at another port", as: everybody, says: addLines(
			"yaml\t/etc/kubernetes/manifests/kube-apiserver.yaml:    - --secure-port=1", "health\tapiserver 200")},
		{name: "certificates of names of 100,000 letters, and nonsense between them", as: everybody,
			says: func(g *trial) []string {
				return append(g.honestAnswer(), slices.Concat(
					certificateLines("/etc/kubernetes/pki/"+strings.Repeat("x", 100_000)+".crt", otherCA),
					certificateLines("../../../etc/passwd", otherCA),
					certificateLines("/etc/kubernetes/pki/apiserver.crt",
						[]byte("-----BEGIN CERTIFICATE-----\nAAAA\n")),
				)...)
			}},
		{name: "four thousand certificates", as: asWorker, says: func(g *trial) []string {
			out := g.honestAnswer()
			for i := range 4_000 {
				out = append(out, certificateLines(fmt.Sprintf("/etc/kubernetes/pki/%d.crt", i), otherCA)...)
			}
			return out
		}},
	}
}
