package engine

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/live"
	"kubeone/internal/decide/identity"
	"kubeone/internal/host"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/probe"
	"kubeone/internal/text/diff"
)

// reader is a host with a different limit of pods, or one that does not report it.
type reader struct {
	*player
	mute bool
}

func (r reader) Run(ctx context.Context, c host.Cmd) (host.Result, error) {
	if c.Name != "read settings" || r.mute {
		return r.player.Run(ctx, c)
	}
	if c.Secret || !strings.Contains(c.Args[0], "/var/lib/kubelet/config.yaml") {
		r.note("asked " + c.Args[0])
	}
	_, err := io.WriteString(c.Stdout, "kubeone-settings\t1\ntext\t/var/lib/kubelet/config.yaml\n"+
		"=kind: KubeletConfiguration\n=maxPods: 110\n\nend\t1\n")
	return host.Result{}, err
}

// reconfigured is a proposal that changes the kubelet settings of all hosts of a stage.
func reconfigured(t *testing.T, s stage) Proposal {
	t.Helper()
	p := Proposal{Want: s.Want(), Observed: probe.Result{World: observed.World{Hosts: map[string]observed.Host{}}}}
	p.Plan.Hosts, p.Plan.Nodes, p.who.Reached = map[string]string{}, map[string]string{}, map[string]identity.ProbeKey{}
	for _, h := range p.Want.Hosts() {
		name := h.Hostname
		if name == "" {
			name = h.ID
		}
		p.Plan.Hosts[h.ID], p.Plan.Nodes[h.ID], p.who.Reached[h.ID] = name, name, identity.ProbeKey(h.ID)
		p.Observed.World.Hosts[h.ID] = observed.Host{ID: h.ID, Reach: observed.Reached}
		p.Observed.World.API.Nodes = append(p.Observed.World.API.Nodes, observed.Node{Name: name})
		settings := step.With(step.ReconfigureParams{Configurations: []string{"kubelet"}})
		p.Plan.Steps = append(p.Plan.Steps,
			plan.Step{ID: "r/" + name, Host: h.ID, Intent: settings},
			plan.Step{ID: "n/" + name, Host: h.ID, Intent: step.Intent{Kind: step.NodeReady}})
	}
	return p
}

// reading is a stage with an extra worker. Its hosts report their settings, except the last.
func reading(t *testing.T) stage {
	t.Helper()
	s := play(t, func(c *Config) {
		pods := int32(90)
		c.Want.Kubelet.MaxPods = &pods
		c.Want.Workers[0].Labels = map[string]string{"a": "b"}
		other := c.Want.Workers[0]
		other.ID, other.Hostname, other.Labels = "192.0.2.22", "other", nil
		c.Want.Workers = []desired.Host{c.Want.Workers[0], other}
	})
	for id, p := range s.hosts {
		s.ways[identity.ProbeKey(id)] = reader{p, id == "192.0.2.22"}
	}
	return s
}

func TestDiffOfHosts(t *testing.T) {
	t.Parallel()
	s := reading(t)
	var got []string
	for _, set := range s.Diff(t.Context(), reconfigured(t, s)) {
		text := strings.Join(set.Hosts, "+")
		for _, c := range set.Changes {
			text += " " + c.Of
			for _, line := range c.Lines {
				if strings.Contains(line, "maxPods") || strings.Contains(line, "label") {
					text += " " + line
				}
			}
			if c.Unknown != "" {
				text += " ?"
			}
		}
		got = append(got, text)
	}
	const unit, config = "/etc/systemd/system/kubelet.service", "/var/lib/kubelet/config.yaml"
	want := []string{
		"192.0.2.11 " + unit + " " + config + " -maxPods: 110 +maxPods: 90",
		"worker " + unit + " " + config + " -maxPods: 110 +maxPods: 90 labels, annotations and taints +label a=b",
		"other kubelet ?", " objects in the cluster ?",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if changed := s.changed(); len(changed) != 1 || changed[0] != "read settings" { // of the host that does not report
		t.Errorf("hosts were asked %q", changed)
	}
	if sets := s.Diff(t.Context(), Proposal{Want: s.Want()}); len(sets) > 0 {
		t.Errorf("of a plan without steps: %+v", sets)
	}
}

// A worker that claims another host's name hides none of that host's changes.
func TestDiffOfHostsOfOneName(t *testing.T) {
	t.Parallel()
	s := reading(t)
	p := reconfigured(t, s)
	p.Plan.Hosts["192.0.2.22"] = "worker"
	var unknown []bool
	for _, set := range s.Diff(t.Context(), p) {
		if strings.Join(set.Hosts, "+") == "worker" {
			unknown = append(unknown, set.Changes[0].Unknown != "")
		}
	}
	if d := cmp.Diff([]bool{false, true}, unknown); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestDiffOfObjects(t *testing.T) {
	t.Parallel()
	s := reading(t)
	p := reconfigured(t, s)
	p.Plan.Steps = append(p.Plan.Steps, plan.Step{Intent: step.With(step.SetSystemParams{Apps: []string{"kube-dns"}})},
		plan.Step{Intent: step.With(step.ApplyAddonParams{Addon: "flannel"})})
	w := changedObjects(p)
	if d := cmp.Diff([]string{"kube-dns"}, w.set); d != "" || len(w.applied) != 1 || !w.configs {
		t.Errorf("%+v", w)
	}
	api := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kubelet-config", Namespace: "kube-system"},
		Data:       map[string]string{"kubelet": "kind: KubeletConfiguration\nmaxPods: 110\n"},
	})
	s.live = []live.Component{{Name: "kube-dns"}}
	got := s.objectsDiff(t.Context(), cluster.New(api, nil), p, w)
	if len(got) != 2 || got[0].Of != "ConfigMap kube-system/kubeadm-config" || got[0].Unknown == "" ||
		got[1].Of != "ConfigMap kube-system/kubelet-config" || len(got[1].Lines) == 0 {
		t.Errorf("%+v", got)
	}
	p.Plan.Steps = append(p.Plan.Steps, plan.Step{Intent: step.Intent{Kind: step.Init}})
	if changedObjects(p).any() {
		t.Error("a cluster that is yet to be made has live objects")
	}
	var none []diff.Change
	if d := cmp.Diff(none, s.clusterDiff(t.Context(), p)); d != "" {
		t.Error(d)
	}
}
