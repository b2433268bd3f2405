package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/decide/identity"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
)

// honest is what worker w-2 answers to the probe when it is well.
const honest = `clock	1800000000.2
uid	0
uname	6.12.41 x86_64
cpus	2
hostname	w-2
machine-id	machine-192.0.1.2
boot-id	boot-2
memory	MemTotal: 4194304 kB
disk	Filesystem 1024-blocks Used Available Capacity Mounted on
disk	/dev/vda 26421208 3125877 20971520 33% /var
exists	/etc/kubernetes/kubelet.conf
absent	/etc/kubernetes/admin.conf
absent	/etc/kubernetes/pki/ca.key
absent	/var/lib/etcd/member
exists	/etc/kubeone/marker
file	/etc/os-release:ID=debian
file	/etc/os-release:VERSION_ID="13"
address	2: eth0    inet 10.0.1.2/24 brd 10.0.1.255 scope global eth0
health	kubelet 200
unit	Id=containerd.service
unit	LoadState=loaded
unit	ActiveState=active
unit	SubState=running
unit	UnitFileState=enabled
unit	
unit	Id=kubelet.service
unit	LoadState=loaded
unit	ActiveState=active
unit	SubState=running
unit	UnitFileState=enabled
unit	
link	lrwxrwxrwx 1 root root 38 Jan  2 10:00 kubelet -> /opt/kubeone/kubelet/1.36.3/kubelet
link	lrwxrwxrwx 1 root root 38 Jan  2 10:00 containerd -> /opt/kubeone/containerd/2.4.2/bin/containerd
file	/etc/kubeone/marker:cluster=alpha
file	/etc/kubeone/marker:role=worker
file	/etc/kubeone/marker:complete=yes
file	/etc/kubeone/digests:kubelet config-1
`

// hostAnswer returns an answer: the honest one with some lines replaced and others added. "-x" leaves out the lines
// that begin so.
func hostAnswer(lines ...string) string {
	kept := strings.Split(strings.TrimSuffix(honest, "\n"), "\n")
	var added []string
	for _, line := range lines {
		if begin, without := strings.CutPrefix(line, "-"); without {
			kept = slices.DeleteFunc(kept, func(have string) bool { return strings.HasPrefix(have, begin) })
		} else {
			added = append(added, line)
		}
	}
	return "kubeone-probe\t1\n" + strings.Join(append(kept, added...), "\n") + "\nend\t1\n"
}

func markerLine(lines ...string) string {
	out := []string{"-file\t/etc/kubeone/marker:"}
	for _, line := range lines {
		out = append(out, "file\t/etc/kubeone/marker:"+line)
	}
	return hostAnswer(out...)
}

func manifestLines(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, "manifest\t/etc/kubernetes/manifests/"+name+".yaml")
	}
	return out
}

// hostileAnswers returns answers with which a worker may try to be another, to harm others, or to stop work on them.
func hostileAnswers() map[string]string {
	const escape = "\x1b]0;owned\x07\x1b[2J"
	all := manifestLines("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	emptied := []string{
		"-exists", "-file\t/etc/kubeone", "-unit", "-health", "-link", "absent\t/etc/kubernetes/kubelet.conf",
		"absent\t/etc/kubeone/marker",
	}
	own := []string{"cluster=alpha", "role=worker", "complete=yes"}
	out := map[string]string{
		"honest":                     hostAnswer(),
		"name of a control plane":    hostAnswer("-hostname", "hostname\tcp-1"),
		"the same in capitals":       hostAnswer("-hostname", "hostname\tCP-1"),
		"name of another worker":     hostAnswer("-hostname", "hostname\tw-3"),
		"name of the joining worker": hostAnswer("-hostname", "hostname\tw-1"),
		"no name":                    hostAnswer("-hostname"),
		"a path as a name":           hostAnswer("-hostname", "hostname\t../../../etc/cron.d/x"),
		"a command as a name":        hostAnswer("-hostname", "hostname\t$(reboot)"),
		"escapes as a name":          hostAnswer("-hostname", "hostname\t"+escape),
		"an endless name":            hostAnswer("-hostname", "hostname\t"+strings.Repeat("a", 100_000)),
		"machine of a control plane": hostAnswer("-machine-id", "machine-id\tmachine-192.0.0.1"),
		"machine of another worker":  hostAnswer("-machine-id", "machine-id\tmachine-192.0.1.3"),
		"no machine":                 hostAnswer("-machine-id"),
		"addresses of others": hostAnswer(
			"address\t2: eth0    inet 10.0.0.1/24 scope global eth0",
			"address\t2: eth0    inet 10.0.1.3/24 scope global eth0",
		),
		"address of the API":          hostAnswer("address\t2: eth0    inet 10.96.0.1/24 scope global eth0"),
		"ten thousand addresses":      hostAnswer(manyAddresses()...),
		"marker of another cluster":   markerLine("cluster=beta", "role=worker", "complete=yes"),
		"marker of no cluster":        markerLine(),
		"marker of a control plane":   markerLine("cluster=alpha", "role=control-plane", "complete=yes"),
		"marker with a peer's ID":     markerLine(append(own, "id=192.0.0.1")...),
		"marker with a worker's ID":   markerLine(append(own, "id=192.0.1.3")...),
		"marker with the joining ID":  markerLine(append(own, "id=192.0.1.1")...),
		"marker with a strange ID":    markerLine(append(own, "id=somebody")...),
		"marker with a peer's Node":   markerLine(append(own, "node=cp-1")...),
		"marker with a worker's Node": markerLine(append(own, "node=w-3")...),
		"marker of a later life":      markerLine(append(own, "epoch=999999")...),
		"marker of a negative life":   markerLine(append(own, "epoch=-5")...),
		"marker of a fence":           markerLine("cluster=alpha", "role=worker", "complete=no", "fenced=run-1"),
		"marker of a restore": markerLine(
			"cluster=alpha", "role=control-plane", "complete=no", "fenced=run-1", "restoring=yes", "epoch=7",
		),
		"marker with escapes":   markerLine("cluster="+escape, "role="+escape, "complete=yes", "id="+escape),
		"etcd's data":           hostAnswer("-absent\t/var/lib/etcd/member", "exists\t/var/lib/etcd/member"),
		"etcd's manifest":       hostAnswer(manifestLines("etcd")...),
		"a whole control plane": hostAnswer(all...),
		"one that is well": hostAnswer(append(all,
			"-absent", "exists\t/var/lib/etcd/member", "exists\t/etc/kubernetes/admin.conf",
			"exists\t/etc/kubernetes/pki/ca.key", "health\tetcd 200", "health\tapiserver 200",
			"health\tcontroller-manager 200", "health\tscheduler 200")...),
		"the CA's key":         hostAnswer("-absent\t/etc/kubernetes/pki/ca.key", "exists\t/etc/kubernetes/pki/ca.key"),
		"an administrator":     hostAnswer("-absent\t/etc/kubernetes/admin.conf", "exists\t/etc/kubernetes/admin.conf"),
		"a healthy etcd":       hostAnswer("health\tetcd 200"),
		"a healthy API server": hostAnswer("health\tapiserver 200"),
		"etcd's data lost":     hostAnswer("etcd-lost\tpanic: " + escape),
		"credentials unasked":  hostAnswer("secret\tkubeconfig YXBpVmVyc2lvbjogdjEK", "access\t1"),
		"another CA": hostAnswer(
			"pem\t==> /etc/kubernetes/pki/ca.crt <==", "pem\t-----BEGIN CERTIFICATE-----", "pem\tAAAA",
			"pem\t-----END CERTIFICATE-----",
		),
		"no kubelet.conf": hostAnswer(
			"-exists\t/etc/kubernetes/kubelet.conf", "absent\t/etc/kubernetes/kubelet.conf",
		),
		"a kubelet of the future": hostAnswer(
			"-link", "link\tl 1 root root 38 Jan 2 10:00 kubelet -> /opt/kubeone/kubelet/99.99.99/kubelet",
		),
		"a kubelet of the past": hostAnswer(
			"-link", "link\tl 1 root root 38 Jan 2 10:00 kubelet -> /opt/kubeone/kubelet/0.0.1/kubelet",
		),
		"a version that is a shell": hostAnswer("version\tkubelet 1.36.3-$(reboot)`id`"),
		"an unknown system":         hostAnswer("-file\t/etc/os-release", "file\t/etc/os-release:ID=plan9"),
		"an unknown processor":      hostAnswer("-uname", "uname\t6.12 pdp11"),
		"an old kernel":             hostAnswer("-uname", "uname\t2.6.1 x86_64"),
		"another century":           hostAnswer("-clock", "clock\t4800000000.2"),
		"no processors":             hostAnswer("-cpus", "cpus\t0"),
		"negative processors":       hostAnswer("-cpus", "cpus\t-1"),
		"more than there are":       hostAnswer("-cpus", "cpus\t99999999999999999999999"),
		"no memory":                 hostAnswer("-memory", "memory\tMemTotal: 0 kB"),
		"no disk":                   hostAnswer("-disk"),
		"swap":                      hostAnswer("swap\t/dev/vdb"),
		"a read-only disk":          hostAnswer("unwritable\tyes"),
		"a lock of somebody": hostAnswer(
			"exists\t/var/lib/kubeone/lock/owner", "file\t/var/lib/kubeone/lock/owner:holder="+escape,
			"file\t/var/lib/kubeone/lock/owner:run=run-9",
			"file\t/var/lib/kubeone/lock/owner:generation=9223372036854775807",
			"beat\t1800000000"),
		"an upgrade of its own":  hostAnswer("file\t/var/lib/kubeone/upgrading:99.1.2"),
		"an upgrade of nonsense": hostAnswer("file\t/var/lib/kubeone/upgrading:" + escape),
		"ports that are taken":   hostAnswer("listen\tLISTEN 0 4096 *:6443 *:* users:((\"haproxy\",pid=1,fd=2))"),
		"other digests": hostAnswer(
			"-file\t/etc/kubeone/digests", "file\t/etc/kubeone/digests:kubelet other",
			"file\t/etc/kubeone/digests:network other", "file\t/etc/kubeone/digests:control-plane other",
		),
		"things that it keeps": hostAnswer(
			"kept\t/etc", "kept\t/var/lib/etcd/member", "kept\t/var/lib/kubeone-old/../../../etc",
		),
		"tools as commands":      hostAnswer("missing\t; reboot", "missing\t$(reboot)", "missing\t`reboot`"),
		"a kubelet that is dead": hostAnswer("-unit", "-health"),
		"units of nonsense":      hostAnswer("unit\tId=kubelet.service", "unit\tActiveState="+escape, "unit\t"),
		"another endpoint": hostAnswer(
			"yaml\t/etc/kubernetes/kubelet.conf:    server: https://evil.example.com:6443"),
		"empty": hostAnswer(emptied...),
		"empty, at odds": hostAnswer(
			append(emptied, "-clock", "clock\t4800000000.2", "-file\t/etc/os-release",
				"listen\tLISTEN 0 9 *:10250 *:* users:((\"x\",pid=1,fd=2))")...,
		),
		"empty, and a peer": hostAnswer(append(emptied, "-hostname", "hostname\tcp-1")...),
		"a hundred thousand lines": hostAnswer(func() []string {
			return slices.Repeat([]string{"manifest\t/etc/kubernetes/manifests/x.yaml"}, 100_000)
		}()...),
		"a block without an end": "kubeone-probe\t1\nblock\tmarker\n" + hostAnswer(),
		"two answers":            hostAnswer() + hostAnswer("-hostname", "hostname\tcp-1"),
		"half an answer":         hostAnswer()[:200],
		"no answer of ours":      "root@w-2:~# \n",
		"a later format":         "kubeone-probe\t2\nend\t1\n",
		"nothing":                "",
		"bytes":                  "\x00\xff\xfe\x01" + hostAnswer("hostname\t\x00\xff"),
	}
	return out
}

func manyAddresses() []string {
	out := make([]string, 0, 10_000)
	for i := range 10_000 {
		out = append(out, fmt.Sprintf("address\t2: eth0    inet 10.0.%d.%d/16 scope global eth0", i/250, i%250+1))
	}
	return out
}

// TestAWorkerDecidesNothingAboutOthers: whatever one worker answers, what is planned for the others, and for the
// cluster, is what would be planned without it, and work on them continues.
func TestAWorkerDecidesNothingAboutOthers(t *testing.T) {
	t.Parallel()
	all := hostileAnswers()
	if len(all) < 60 {
		t.Fatalf("%d attempts", len(all))
	}
	want, blocked, others := plannedBeside(t, "")
	if !slices.Contains(want, "join-worker/w-1") || blocked != "" || len(others) > 0 {
		t.Fatalf("without it: %q, blocked %q, %q", want, blocked, others)
	}
	for name, answer := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := want
			got, blocked, others := plannedBeside(t, answer)
			if name == "name of the joining worker" { // it cannot be told which of the two it is: both wait
				want = nil
				others = slices.DeleteFunc(others, func(i string) bool { return strings.Contains(i, "192.0.1.1") })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the plan about others changes:\n%s", diff)
			}
			if blocked != "" || len(others) > 0 {
				t.Errorf("work on others is stopped: %s, %q", blocked, others)
			}
		})
	}
}

// plannedBeside is what is planned in a cluster in which w-1 is to join, about everything but w-2, which gives that
// answer: IDs of steps, why all is blocked, and what others are said to need.
func plannedBeside(t *testing.T, answer string) (steps []string, blocked string, others []string) {
	t.Helper()
	in := healthyCluster(3, 3, "w-1")
	const id, name = "192.0.1.2", "w-2"
	said, err := probe.Parse([]byte(answer), time.Unix(1_800_000_000, 0), time.Unix(1_800_000_000, 0))
	hostile := said.Host
	if err != nil {
		hostile = observed.Host{Reach: observed.Denied, Class: "exit", Problem: err.Error()}
	}
	hostile.ID = id
	in.Is.Hosts[id] = hostile
	who := identity.Match(in.Want, in.Is)
	in.Want, in.Is, in.Moved, in.Contradictions = who.Want, who.Is, who.Moved, who.Contradictions
	p, decisions := Build(Input{Decide: in})
	for _, s := range p.Steps {
		if s.Host != id && s.Intent.NodeName != name && s.Host != "" {
			steps = append(steps, s.ID)
		}
		if s.Host == "" && (s.Intent.Kind.ChangesMembership() || s.Intent.NodeName != "" && s.Intent.NodeName != name) {
			steps = append(steps, s.ID)
		}
	}
	slices.Sort(steps)
	for _, i := range p.Operator {
		if i.Host != id {
			others = append(others, fmt.Sprintf("%+v", i))
		}
	}
	if decisions[0].Route == fsm.Error {
		blocked = "error: "
		for _, found := range decisions[0].Problems {
			blocked += problemText(p.Hosts, found) + "; "
		}
	}
	return steps, blocked + p.Blocked, others
}

// A worker whose name is refused is called by its ID. One that chose the name of another's Node as its ID must not
// take the place of that host's steps.
func TestAnIDThatIsAnothersNameHidesNoStep(t *testing.T) {
	t.Parallel()
	in := healthyCluster(1, 2)
	liar := &in.Want.Workers[0]
	is := in.Is.Hosts[liar.ID]
	delete(in.Is.Hosts, liar.ID)
	liar.ID, liar.Hostname, is.ID, is.Hostname = "w-2", "", "w-2", "localhost"
	in.Is.Hosts["w-2"] = is
	p, err := Reset(in, ResetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, s := range p.Steps {
		if other, twice := seen[s.ID]; twice {
			t.Errorf("%s is a step of %s, and of %s", s.ID, other, s.Host)
		}
		seen[s.ID] = s.Host
		if s.Host == "w-2" && s.Intent.NodeName == "w-2" {
			t.Errorf("%s: its Node is taken to be %s", s.ID, s.Intent.NodeName)
		}
	}
	for _, h := range in.Want.Hosts() {
		resets := func(s Step) bool { return s.Host == h.ID && s.Intent.Kind == step.ResetHost }
		if !slices.ContainsFunc(p.Steps, resets) {
			t.Errorf("%s is not reset", h.ID)
		}
	}
}

// The Node of a worker goes with the worker, whatever that calls itself, and whatever addresses its kubelet writes.
func TestAWorkerDoesNotKeepItsNode(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"as before": "w-1", "another name": "new-name", "another's name": "w-2", "a name of the cluster's": "localhost",
	} {
		in := healthyCluster(1, 2)
		in.Is.API.Record.Nodes = map[string]string{"192.0.1.1": "w-1", "192.0.1.2": "w-2"}
		for i := range in.Want.Workers {
			in.Want.Workers[i].Hostname = ""
		}
		for i := range in.Is.API.Nodes {
			if n := &in.Is.API.Nodes[i]; n.Name == "w-1" {
				n.Addresses = []string{"10.9.9.9"}
			}
		}
		changeHost(in, "192.0.1.1", func(is *observed.Host) { is.Hostname = says })
		p, err := RemoveNode(in, "192.0.1.1", false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var about []string
		for _, s := range p.Steps {
			if k := s.Intent.Kind; k == step.DrainNode || k == step.DeleteNode {
				about = append(about, string(k)+" "+s.Intent.NodeName)
			}
		}
		want := []string{string(step.DrainNode) + " w-1", string(step.DeleteNode) + " w-1"}
		if diff := cmp.Diff(want, about); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
