package decide

import (
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

// Edited files of the host; all but the pod's can be restored.
const (
	config    = "/var/lib/kubelet/config.yaml"
	registry  = "/etc/containerd/certs.d/docker.io/hosts.toml"
	scheduler = "/etc/kubernetes/manifests/kube-scheduler.yaml"
)

func (in *Input) editFiles(id string, files ...string) {
	in.changeObserved(id, func(h *observed.Host) { h.Edited, h.Restorable = files, files })
}

// restoration is a world, and the files restored in it.
type restoration struct {
	name   string
	change func(*Input)
	route  fsm.Route
	want   map[string][]string
}

const admin = "/etc/kubernetes/admin.conf"

func exposeFile(h *observed.Host) {
	h.Exposed = []observed.FileAccess{{Path: admin, Mode: "644"}}
}

// exposureCases returns worlds with files that users other than root can read: they stop nothing and break nothing.
func exposureCases() []restoration {
	return []restoration{
		{"a mode", func(in *Input) { in.changeObserved(cp2, exposeFile) }, fsm.Repair,
			map[string][]string{cp2: {admin}}},
		{"a mode and a file", func(in *Input) {
			in.editFiles(cp2, registry)
			in.changeObserved(cp2, exposeFile)
		}, fsm.Repair, map[string][]string{cp2: {registry, admin}}},
		{"a host that is not well for another reason", func(in *Input) {
			in.changeObserved(cp2, exposeFile)
			in.nodeNamed("cp-2").Ready = observed.No
		}, fsm.Instruct, nil},
		{"etcd cannot do without the host, which does not stop", func(in *Input) {
			in.changeObserved(cp2, exposeFile)
			in.Is.Etcd.Members[2].Healthy = observed.No
		}, fsm.Instruct, nil},
	}
}

func TestWhichFilesAreRestored(t *testing.T) {
	t.Parallel()
	stopped := func(h *observed.Host) { h.Kubelet.Active, h.Kubelet.State = false, "inactive/dead" }
	tests := []restoration{
		{"none is changed", func(*Input) {}, fsm.Nothing, nil},
		{"of a control-plane host and of a worker", func(in *Input) {
			in.editFiles(cp2, config, registry)
			in.editFiles(w1, config)
		}, fsm.Repair, map[string][]string{cp2: {config, registry}, w1: {config}}},
		{"a static pod", func(in *Input) { in.editFiles(cp2, scheduler) }, fsm.Nothing, nil},
		{"a static pod and another file", func(in *Input) { in.editFiles(cp2, scheduler, config) }, fsm.Repair,
			map[string][]string{cp2: {config}}},
		{"what the host has no copy of", func(in *Input) {
			in.editFiles(cp2, config)
			in.changeObserved(cp2, func(h *observed.Host) { h.Restorable = nil })
		}, fsm.Nothing, nil},
		{"outside the limit", func(in *Input) {
			in.editFiles(cp2, config)
			in.Limit = map[string]bool{w1: true}
		}, fsm.Nothing, nil},
		{"before another configuration is rolled out", func(in *Input) {
			in.editFiles(w1, config)
			in.Config = map[string]map[string]string{w1: {"kubelet": "config-2"}}
		}, fsm.Repair, map[string][]string{w1: {config}}},
		{"an upgrade writes them", func(in *Input) {
			in.editFiles(w1, config)
			in.allOlder("1.36.1")
		}, fsm.Upgrade, nil},
		{"in the middle of an upgrade", func(in *Input) {
			in.editFiles(w1, config)
			in.setOlderVersion(w1, "w-1", "1.36.1")
			in.changeObserved(w1, func(h *observed.Host) { h.Upgrading = decidetest.Version })
		}, fsm.Upgrade, nil},
		{"at the very end of an upgrade", func(in *Input) {
			in.editFiles(w1, config)
			in.changeObserved(w1, func(h *observed.Host) { h.Upgrading = decidetest.Version })
		}, fsm.Upgrade, nil},
		{"in the middle of a worker's upgrade to an undesired version", func(in *Input) {
			in.editFiles(w1, config)
			in.changeObserved(w1, func(h *observed.Host) { h.Upgrading = "1.36.1" })
		}, fsm.Upgrade, nil},
		{"after a control-plane host's upgrade to an undesired version", func(in *Input) {
			in.editFiles(cp2, config)
			in.changeObserved(cp2, func(h *observed.Host) { h.Upgrading = "1.36.1" })
		}, fsm.Repair, map[string][]string{cp2: {config}}},
		{"a worker's kubelet does not run", func(in *Input) {
			in.editFiles(w1, config)
			in.editFiles(w2, config) // the others' wait until all hosts are healthy
			in.changeObserved(w1, stopped)
		}, fsm.Repair, map[string][]string{w1: {config}}},
		{"a control-plane host's kubelet does not run", func(in *Input) {
			in.editFiles(cp2, config)
			in.changeObserved(cp2, stopped)
		}, fsm.Repair, map[string][]string{cp2: {config}}},
		{"a worker that is not Ready", func(in *Input) {
			in.editFiles(w1, config)
			in.nodeNamed("w-1").Ready = observed.No
		}, fsm.Repair, map[string][]string{w1: {config}}},
		{"etcd cannot do without the host", func(in *Input) {
			in.editFiles(cp2, config)
			in.loseHosts(cp3)
		}, fsm.Instruct, nil},
		{"etcd cannot do without the host, which is not Ready", func(in *Input) {
			in.editFiles(cp2, config)
			in.nodeNamed("cp-2").Ready = observed.No
			in.loseHosts(cp3)
		}, fsm.Instruct, nil},
		{"etcd cannot do without the host, and nothing stops for it", func(in *Input) {
			in.editFiles(cp2, registry)
			in.nodeNamed("cp-2").Ready = observed.No
			in.loseHosts(cp3)
		}, fsm.Repair, map[string][]string{cp2: {registry}}},
	}
	tests = append(tests, exposureCases()...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := healthyCluster(3, 2)
			tt.change(&in)
			d := Decide(in)
			if d.Route != tt.route {
				t.Errorf("route %s, want %s: %+v", d.Route, tt.route, d.Trace)
			}
			if diff := cmp.Diff(tt.want, d.Restores); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Edited files give a warning on a healthy host. On other hosts they are among the reasons of the condition.
func TestEditedFilesAreSaidOfHostsThatAreWell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*observed.Host)
		want  []string
	}{
		"well": {func(*observed.Host) {}, []string{
			"FilesEdited(files=" + config + "+" + registry + ")", "StaticPodsEdited(files=" + scheduler + ")",
		}},
		"stopped": {func(h *observed.Host) { h.Kubelet.Active = false }, nil},
	} {
		in := healthyCluster(3, 1)
		in.editFiles(cp2, config, scheduler, registry)
		in.changeObserved(cp2, c.spoil)
		var said []string
		for _, p := range Decide(in).Warnings {
			if p.Host == cp2 && (p.Code == problem.FilesEdited || p.Code == problem.StaticPodsEdited) {
				said = append(said, p.String())
			}
		}
		if diff := cmp.Diff(c.want, said); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// An upgrade that would overwrite additions to static pods does not begin, unless the operator discards them.
func TestAnUpgradeDoesNotOverwriteAdditions(t *testing.T) {
	t.Parallel()
	older := func(in *Input) { in.allOlder("1.36.1") }
	forced := func(in *Input) { in.ForceUpgrade = true }
	edited := func(in *Input) {
		in.editFiles(cp2, scheduler)
		in.changeObserved(cp2, func(h *observed.Host) {
			h.PodEdits = map[string][]string{scheduler: {"--v", "mountPath: /etc/scheduler"}}
		})
	}
	const added = "cp-2: " + scheduler + " (--v, mountPath: /etc/scheduler)"
	for name, c := range map[string]struct {
		changes []func(*Input)
		route   fsm.Route
		said    string
	}{
		"no upgrade":         {[]func(*Input){edited}, fsm.Nothing, ""},
		"another version":    {[]func(*Input){older, edited}, fsm.Error, "EditsInTheWay(files=" + added + ")"},
		"forced":             {[]func(*Input){forced, edited}, fsm.Error, "EditsInTheWay(files=" + added + ")"},
		"nothing is changed": {[]func(*Input){older}, fsm.Upgrade, ""},
		"another file is":    {[]func(*Input){older, func(in *Input) { in.editFiles(cp2, config) }}, fsm.Upgrade, ""},
		"of another host": {[]func(*Input){edited, func(in *Input) {
			in.ForceUpgrade, in.Limit = true, map[string]bool{cp1: true, w1: true}
		}}, fsm.Upgrade, ""},
		"at the very end of an upgrade": {[]func(*Input){edited, func(in *Input) {
			in.changeObserved(cp2, func(h *observed.Host) { h.Upgrading = decidetest.Version })
		}}, fsm.Error, "EditsInTheWay(files=" + added + ")"},
		"to be discarded": {[]func(*Input){older, edited, func(in *Input) { in.DiscardEdits = true }}, fsm.Upgrade, ""},
	} {
		in := healthyCluster(3, 1)
		for _, change := range c.changes {
			change(&in)
		}
		d := Decide(in)
		said := ""
		for _, p := range d.Problems {
			said += p.String()
		}
		if d.Route != c.route || said != c.said {
			t.Errorf("%s: route %s, problems %q, want %s, %q", name, d.Route, said, c.route, c.said)
		}
	}
}

// Files that users other than root can read are reported for every member.
func TestExposedFilesAreSaidOfMembers(t *testing.T) {
	t.Parallel()
	for _, spoil := range []func(*observed.Host){
		func(*observed.Host) {}, func(h *observed.Host) { h.Kubelet.Active = false },
	} {
		in := healthyCluster(3, 1)
		in.changeObserved(cp2, exposeFile)
		in.changeObserved(cp2, spoil)
		var said []string
		for _, p := range Decide(in).Warnings {
			if p.Code == problem.FilesExposed {
				said = append(said, p.Host+": "+p.Text())
			}
		}
		want := []string{cp2 + ": users other than root can read or change /etc/kubernetes/admin.conf (mode 0644)"}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Error(diff)
		}
	}
}
