package decide

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"
)

// machineID is the ID of the tests' Machine.
const machineID = "5c0e9a2e-7d0b-4c53-9b7e-0f2b6f1f6a10"

// machineName is its namespace and name.
const machineName = "kube-system/pool-1"

// aWorker returns a worker of a Machine in its desired state.
func aWorker() WorkerInput {
	h := decidetest.Host(desired.Worker, "w", 1)
	h.ID, h.HasOwnID, h.Machine = machineID, true, machineName
	h.Labels = map[string]string{desired.OwnerLabel: machineID}
	in := WorkerInput{APIServers: []string{decidetest.Version}}
	in.Want = desired.Cluster{Name: decidetest.Cluster, KubernetesVersion: decidetest.Version}
	in.Want.Workers = []desired.Host{h}
	in.CA = decidetest.CA
	is := decidetest.Member(h)
	is.Marker.ID, is.Marker.Machine, is.Marker.Node = machineID, machineName, h.Hostname
	in.Is = observed.World{
		Hosts: map[string]observed.Host{h.ID: is},
		API: observed.API{
			Reached: observed.Yes, AutoApproval: observed.No, Nodes: []observed.Node{ownNode(h)},
		},
	}
	return in
}

// ownNode returns the Node of a healthy Machine.
func ownNode(h desired.Host) observed.Node {
	n := decidetest.ReadyNode(h)
	n.Labels = map[string]string{desired.OwnerLabel: machineID}
	return n
}

// changeHost changes what the host says.
func (in WorkerInput) changeHost(change func(*observed.Host)) WorkerInput {
	is := in.Is.Hosts[machineID]
	change(&is)
	in.Is.Hosts = map[string]observed.Host{machineID: is}
	return in
}

// makeBare removes everything of a cluster from the host, and its Node.
func (in WorkerInput) makeBare() WorkerInput {
	in.Is.Hosts = map[string]observed.Host{machineID: decidetest.Bare(in.Want.Workers[0])}
	in.Is.API.Nodes = nil
	return in
}

func (in WorkerInput) makeSilent() WorkerInput {
	in.Is.Hosts = map[string]observed.Host{machineID: decidetest.Silent(in.Want.Workers[0])}
	return in
}

func (in WorkerInput) removeNode() WorkerInput {
	in.MachineDeleted = true
	return in
}

// changeDesired changes what is desired of the worker.
func (in WorkerInput) changeDesired(change func(*desired.Host)) WorkerInput {
	in.Want.Workers = slices.Clone(in.Want.Workers)
	change(&in.Want.Workers[0])
	return in
}

func (in WorkerInput) autoApproval(is observed.Tri) WorkerInput {
	in.Is.API.AutoApproval = is
	return in
}

func (in WorkerInput) apiServers(versions ...string) WorkerInput {
	in.APIServers = versions
	return in
}

func TestWhatAWorkerNeeds(t *testing.T) {
	t.Parallel()
	kubelet := func(v string) func(*desired.Host) { return func(h *desired.Host) { h.Versions.Kubernetes = v } }
	marker := func(change func(*observed.Marker)) func(*observed.Host) {
		return func(is *observed.Host) {
			m := *is.Marker
			change(&m)
			is.Marker = &m
		}
	}
	stopped := func(is *observed.Host) { is.Kubelet.Active, is.Healthz = false, observed.No }
	for _, c := range []struct {
		name  string
		in    WorkerInput
		route fsm.Route
		code  problem.Code // of the first problem
	}{
		{"well", aWorker(), fsm.Nothing, ""},
		{"bare", aWorker().makeBare(), fsm.Join, ""},
		{"a join that was interrupted", aWorker().makeBare().changeHost(func(is *observed.Host) {
			is.Marker = &observed.Marker{Cluster: decidetest.Cluster, Role: "worker", ID: machineID}
		}), fsm.Join, ""},
		{"silent", aWorker().makeSilent(), fsm.Wait, problem.HostUnreachable},
		{"its disk is full", aWorker().changeHost(func(is *observed.Host) { is.Unwritable = "no space left" }),
			fsm.Wait,
			problem.HostUnwritable},
		{"the manifest has taken the host", aWorker().changeHost(marker(func(m *observed.Marker) {
			m.ID, m.Machine = "192.0.1.1", ""
		})), fsm.Error, problem.HostClaimed},
		{"another Machine has the host", aWorker().changeHost(marker(func(m *observed.Marker) {
			m.ID, m.Machine = "another", "kube-system/other"
		})), fsm.Error, problem.HostClaimed},
		{"the host is of the time before IDs", aWorker().changeHost(marker(func(m *observed.Marker) { m.ID = "" })),
			fsm.Error, problem.HostClaimed},
		{"another cluster has the host", aWorker().changeHost(marker(func(m *observed.Marker) { m.Cluster = "beta" })),
			fsm.Error, problem.ForeignCluster},
		{"it says that it is of the control plane", aWorker().changeHost(func(is *observed.Host) {
			is.EtcdData = observed.Yes
		}), fsm.Error, problem.ControlPlaneClaimed},
		{"the Node of its name belongs to another host", aWorker().makeBare().changeNode(func(n *observed.Node) {
			n.Labels = nil
		}), fsm.Error, problem.NodeOfAnother},
		{"the Node of its name is a Machine's of before", aWorker().makeBare().changeNode(func(n *observed.Node) {
			n.Labels = map[string]string{desired.OwnerLabel: "another"}
		}), fsm.Error, problem.NodeOfAnother},
		{"gone, and its silent host is given up", aWorker().makeSilent().removeNode().givenUp(), fsm.Abandon, ""},
		{"gone, and its host shows another key", aWorker().changeHost(func(is *observed.Host) {
			is.Reach, is.Problem = observed.Denied, "it shows another host key"
		}).removeNode().givenUp(), fsm.Wait, problem.HostLoginRefused},
		{"gone, and the Node of its name belongs to another host",
			aWorker().makeBare().removeNode().changeNode(func(n *observed.Node) {
				n.Labels = nil
			}), fsm.Nothing, ""},
		{"too small", aWorker().makeBare().changeHost(func(is *observed.Host) { is.DiskMiB = 10 }), fsm.Error,
			problem.DiskTooSmall},
		{"the API does not answer", aWorker().makeBare().wantingAPI(observed.No), fsm.Wait,
			problem.APIServerVersionUnknown},
		{"a join token would be accepted for any Node", aWorker().makeBare().autoApproval(observed.Yes), fsm.Wait,
			problem.JoinTokensForAny},
		{"it is unknown which Nodes a join token is good for", aWorker().makeBare().autoApproval(observed.Unknown),
			fsm.Wait,
			problem.JoinTokensForAny},
		{"new credentials need a token too", aWorker().changeHost(func(is *observed.Host) {
			is.KubeletConf = observed.No
		}).autoApproval(observed.Yes), fsm.Wait, problem.KubeletConfMissing},
		{"kubelet newer than the API servers", aWorker().makeBare().changeDesired(kubelet("1.37.0")), fsm.Error,
			problem.KubeletVersionRefused},
		{"kubelet of a newer patch release", aWorker().makeBare().changeDesired(kubelet("1.36.4")), fsm.Error,
			problem.KubeletVersionRefused},
		{"kubelet four minors older", aWorker().makeBare().changeDesired(kubelet("1.32.9")), fsm.Error,
			problem.KubeletVersionRefused},
		{"kubelet three minors older", aWorker().makeBare().changeDesired(kubelet("1.33.0")), fsm.Join, ""},
		{"the control plane is being upgraded", aWorker().makeBare().apiServers("1.35.4", decidetest.Version), fsm.Wait,
			problem.KubeletVersionRefused},
		{"a container runtime that the kubelet does not support", aWorker().changeDesired(func(h *desired.Host) {
			h.Versions.Containerd = "1.7.22"
		}), fsm.Error, problem.ContainerdRefused},
		{"kubelet up", aWorker().changeHost(func(is *observed.Host) { is.Kubelet.Version = "1.35.4" }), fsm.Upgrade,
			""},
		{"kubelet down", aWorker().changeDesired(kubelet("1.35.4")), fsm.Upgrade, ""},
		{"another container runtime",
			aWorker().changeDesired(func(h *desired.Host) { h.Versions.Containerd = "2.3.7" }),
			fsm.Upgrade, ""},
		{"kubelet up while the control plane is being upgraded",
			aWorker().changeHost(func(is *observed.Host) { is.Kubelet.Version = "1.35.4" }).apiServers("1.35.4",
				"1.36.3"),
			fsm.Wait, problem.KubeletVersionRefused},
		{"kubelet stopped", aWorker().changeHost(stopped), fsm.Repair, ""},
		{"kubelet stopped in the middle of a change of versions",
			aWorker().changeHost(stopped).changeHost(func(is *observed.Host) {
				is.Upgrading, is.Kubelet.Version = decidetest.Version, "1.35.4"
			}), fsm.Upgrade, ""},
		{"kubelet stopped in the middle of a change that is no longer desired",
			aWorker().changeHost(stopped).changeHost(
				func(is *observed.Host) { is.Upgrading, is.Kubelet.Version = "1.35.4", "1.35.4" }), fsm.Upgrade, ""},
		{"kubelet stopped in the middle of a change, and what is wanted now is refused",
			aWorker().changeHost(stopped).changeHost(
				func(is *observed.Host) { is.Upgrading = decidetest.Version }).changeDesired(kubelet("1.37.0")),
			fsm.Repair,
			""},
		{"not Ready", aWorker().changeNode(func(n *observed.Node) { n.Ready = observed.No }), fsm.Wait,
			problem.NodeNotReady},
		{"not Ready, and a file edited",
			aWorker().changeNode(func(n *observed.Node) { n.Ready = observed.No }).changeHost(
				func(is *observed.Host) {
					is.Edited = []string{"/var/lib/kubelet/config.yaml"}
					is.Restorable = is.Edited
				}), fsm.Repair, ""},
		{"credentials lost", aWorker().changeHost(func(is *observed.Host) { is.KubeletCert = observed.No }), fsm.Repair,
			""},
		{"a label", aWorker().changeDesired(func(h *desired.Host) { h.Labels = map[string]string{"pool": "a"} }),
			fsm.Resources, ""},
		{"closed by a run that was interrupted", aWorker().changeNode(func(n *observed.Node) {
			n.Unschedulable, n.Annotations = true, map[string]string{observed.CordonAnnotation: "run"}
		}), fsm.Resources, ""},
		{"other settings, and it is its turn", aWorker().otherSettings().setTurn(Now), fsm.Reconfigure, ""},
		{"other settings, and it is others' turn", aWorker().otherSettings(), fsm.Wait, problem.SettingsLater},
		{"other settings, which a host has refused", aWorker().otherSettings().setTurn(Refused), fsm.Wait,
			problem.SettingsLater},
		{"other credentials, and it is its turn", aWorker().setCredential(observed.CredentialOther).setTurn(Now),
			fsm.Reconfigure, ""},
		{"other credentials, and it is others' turn", aWorker().setCredential(observed.CredentialMissing),
			fsm.Reconfigure, ""},
		{"other credentials, and settings that have failed",
			aWorker().otherSettings().setCredential(observed.CredentialOther).setTurn(Refused), fsm.Reconfigure, ""},
		{"other credentials, and versions that are refused",
			aWorker().setCredential(observed.CredentialOther).changeHost(func(is *observed.Host) {
				is.Kubelet.Version = "1.35.4"
			}).apiServers("1.35.4", "1.36.3"), fsm.Reconfigure, ""},
		{"other credentials in the middle of a change", aWorker().setCredential(observed.CredentialOther).changeHost(
			func(is *observed.Host) { is.Upgrading = decidetest.Version }), fsm.Upgrade, ""},
		{"unknown credentials", aWorker().setCredential(observed.CredentialLeft).setTurn(Now), fsm.Nothing,
			""},
		{"its turn, and nothing differs", aWorker().setTurn(Now), fsm.Nothing, ""},
		{"settings that it never had",
			aWorker().otherSettings().changeHost(func(is *observed.Host) { is.Digests = nil }),
			fsm.Nothing, ""},
		{"other settings, and a kubelet that has stopped", aWorker().otherSettings().setTurn(Now).changeHost(stopped),
			fsm.Repair, ""},
		{"other settings, and it is not Ready",
			aWorker().otherSettings().setTurn(Now).changeNode(func(n *observed.Node) {
				n.Ready = observed.No
			}), fsm.Wait, problem.NodeNotReady},
		{"other settings, and closed by a run that was interrupted", aWorker().otherSettings().changeNode(
			func(n *observed.Node) {
				n.Unschedulable, n.Annotations = true, map[string]string{observed.CordonAnnotation: "run"}
			}), fsm.Resources, ""},
		{"another kubelet and other settings are one change",
			aWorker().otherSettings().changeDesired(kubelet("1.35.4")),
			fsm.Upgrade, ""},
		{"another kubelet, and settings that a host has refused",
			aWorker().otherSettings().setTurn(Refused).changeDesired(kubelet("1.35.4")), fsm.Wait,
			problem.SettingsLater},
		{"another kubelet, and it has the settings that another has refused",
			aWorker().setTurn(Refused).changeDesired(kubelet("1.35.4")), fsm.Upgrade, ""},
		{"an interrupted change of settings continues, even if refused",
			aWorker().otherSettings().setTurn(Refused).changeHost(func(is *observed.Host) {
				is.Upgrading = decidetest.Version
			}), fsm.Upgrade, ""},
		{"closed by a person", aWorker().changeNode(func(n *observed.Node) { n.Unschedulable = true }), fsm.Nothing,
			""},

		{"gone, and a worker still", aWorker().removeNode(), fsm.Return, ""},
		{"gone before it had joined", aWorker().makeBare().changeHost(func(is *observed.Host) {
			is.Marker = &observed.Marker{Cluster: decidetest.Cluster, Role: "worker", ID: machineID}
		}).removeNode(), fsm.Return, ""},
		{"gone before anything was done", aWorker().makeBare().removeNode(), fsm.Nothing, ""},
		{"gone, bare, and its Node is there", aWorker().makeBare().changeNode(nil).removeNode(), fsm.Return, ""},
		{"gone and silent", aWorker().makeSilent().removeNode(), fsm.Wait, problem.HostUnreachable},
		{"gone and given up", aWorker().makeSilent().removeNode().givenUp(), fsm.Abandon, ""},
		{"given up without a Node", aWorker().makeSilent().noNode().removeNode().givenUp(), fsm.Nothing, ""},
		{"given up, and it answers", aWorker().removeNode().givenUp(), fsm.Return, ""},
		{"given up, and the API does not answer", aWorker().makeSilent().removeNode().givenUp().wantingAPI(observed.No),
			fsm.Wait,
			problem.HostUnreachable},
		{"gone, and the API does not answer", aWorker().removeNode().wantingAPI(observed.No), fsm.Wait,
			problem.NodeStatusUnknown},
		{"gone, and the manifest has the host",
			aWorker().changeHost(marker(func(m *observed.Marker) { m.ID = "192.0.1.1" })).
				removeNode(), fsm.Nothing, ""},
		{"gone, and another cluster has the host", aWorker().changeHost(marker(func(m *observed.Marker) {
			m.Cluster = "beta"
		})).removeNode(), fsm.Nothing, ""},
		{"gone, and its disk is full", aWorker().changeHost(func(is *observed.Host) {
			is.Unwritable = "no space left"
		}).removeNode(), fsm.Wait, problem.HostUnwritable},
	} {
		d := Worker(c.in)
		code := problem.Code("")
		if len(d.Problems) > 0 {
			code = d.Problems[0].Code
		}
		if d.Route != c.route || code != c.code {
			t.Errorf("%s: %s, %q, want %s, %q\n%+v", c.name, d.Route, code, c.route, c.code, d.Trace)
		}
		if err := followsTheTable(d); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// otherSettings gives the host other settings than the desired ones.
func (in WorkerInput) otherSettings() WorkerInput {
	in.Config = map[string]map[string]string{machineID: {"kubelet": "new", "kernel": "same"}}
	return in.changeHost(func(is *observed.Host) { is.Digests = map[string]string{"kubelet": "old", "kernel": "same"} })
}

// setCredential sets the state of one of the host's credentials.
func (in WorkerInput) setCredential(is observed.CredentialState) WorkerInput {
	return in.changeHost(func(h *observed.Host) {
		h.Credentials = []observed.Credential{{Of: "registry credentials of docker.io", Is: is}}
	})
}

func (in WorkerInput) setTurn(t Turn) WorkerInput {
	in.Turn = t
	return in
}

// changeNode changes its Node, or restores it if the change is nil.
func (in WorkerInput) changeNode(change func(*observed.Node)) WorkerInput {
	n := ownNode(in.Want.Workers[0])
	if change != nil {
		change(&n)
	}
	in.Is.API.Nodes = []observed.Node{n}
	return in
}

func (in WorkerInput) noNode() WorkerInput {
	in.Is.API.Nodes = nil
	return in
}

func (in WorkerInput) givenUp() WorkerInput {
	in.GivenUp = true
	return in
}

func (in WorkerInput) wantingAPI(reached observed.Tri) WorkerInput {
	in.Is.API.Reached = reached
	return in
}

// followsTheTable checks that the trace of a worker's decision follows the table to its route.
func followsTheTable(d Decision) error {
	state := fsm.AskWanted
	for _, v := range d.Trace {
		if v.State != state || v.Why == "" ||
			!slices.Contains(fsm.Worker.Table(), fsm.Transition{From: v.State, On: v.Event, To: v.To}) {
			return fmt.Errorf("the trace does not follow the table at %s: %+v", state, d.Trace)
		}
		state = v.To
	}
	stuck := d.Route == fsm.Error || d.Route == fsm.Wait
	switch {
	case state != fsm.State(d.Route):
		return fmt.Errorf("the trace ends at %s, the route is %s", state, d.Route)
	case stuck != (len(d.Problems) > 0):
		return fmt.Errorf("route %s with %d problems", d.Route, len(d.Problems))
	}
	return checkTexts(d)
}

// TestNothingIsDoneToForeignHosts decides random worlds and checks what must never happen: a change to a foreign
// or unknown host, the removal of a desired worker, or a kubelet that some API server refuses.
func TestNothingIsDoneToForeignHosts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[fsm.Route]int{}
	for range 50000 {
		in := randomWorker(r)
		d := Worker(in)
		seen[d.Route]++
		if err := followsTheTable(d); err != nil {
			t.Fatalf("%v\n%+v", err, in)
		}
		if err := checkHarmless(in, d); err != nil {
			t.Fatalf("%v: %s\n%+v\n%+v", err, d.Route, d.Trace, in)
		}
		if again := Worker(in); !cmp.Equal(d, again) {
			t.Fatalf("two decisions about one world:\n%s", cmp.Diff(d, again))
		}
	}
	for _, route := range fsm.Worker.Routes() {
		if seen[route] == 0 {
			t.Errorf("no world led to %s", route)
		}
	}
}

func randomWorker(r *rand.Rand) WorkerInput {
	in := aWorker()
	tri := func() observed.Tri {
		return []observed.Tri{observed.Yes, observed.Yes, observed.No, observed.Unknown}[r.IntN(4)]
	}
	maybe := func(odds int) bool { return r.IntN(odds) == 0 }
	if maybe(3) {
		in = in.makeBare()
	}
	in = in.changeHost(func(is *observed.Host) {
		if maybe(3) {
			is.Marker = &observed.Marker{
				Cluster: []string{decidetest.Cluster, decidetest.Cluster, "beta"}[r.IntN(3)],
				ID:      []string{machineID, machineID, "", "other"}[r.IntN(4)],
				Role:    []string{"worker", "worker", "worker", "control-plane"}[r.IntN(4)], Complete: maybe(2),
			}
		}
		if maybe(4) {
			is.KubeletConf, is.KubeletCert, is.EtcdData, is.PKI = tri(), tri(), tri(), tri()
		}
		is.Kubelet.Active, is.Containerd.Active = !maybe(5), !maybe(6)
		is.Kubelet.Version = []string{decidetest.Version, "1.35.4", "1.36.1"}[r.IntN(3)]
		if maybe(6) {
			is.Upgrading = decidetest.Version
		}
		if maybe(8) {
			is.CAHash = decidetest.OtherCA
		}
		if maybe(10) {
			is.Unwritable = "read-only"
		}
		is.ClockSkew = time.Duration(r.IntN(40)) * time.Second
	})
	if maybe(6) {
		in = in.makeSilent()
	}
	if maybe(4) {
		in = in.changeNode(func(n *observed.Node) { n.Ready, n.KubeletVersion = tri(), "1.36.1" })
	}
	if maybe(8) {
		in = in.noNode()
	}
	in.Is.API.Reached = tri()
	in.APIServers = [][]string{{"1.36.3"}, {"1.36.3"}, {"1.35.4", "1.36.3"}, {"1.35.4"}, nil}[r.IntN(5)]
	in.MachineDeleted, in.GivenUp = maybe(3), maybe(2)
	if maybe(3) {
		in = in.otherSettings().setTurn([]Turn{Now, Now, NotYet, Refused}[r.IntN(4)])
	}
	if maybe(5) {
		in = in.setCredential(observed.CredentialOther)
	}
	return in.changeDesired(func(h *desired.Host) {
		h.Versions.Kubernetes = []string{"", "", "1.35.4", "1.37.0", "1.32.0"}[r.IntN(5)]
		if maybe(3) {
			h.Labels = map[string]string{"pool": "a"}
		}
	})
}

// credentialsAlone returns the drift that needs no turn.
func credentialsAlone() map[string][]string {
	return map[string][]string{machineID: {desired.CredentialsConfiguration}}
}

// checkHarmless returns an error for a forbidden part of a decision.
func checkHarmless(in WorkerInput, d Decision) error {
	is := in.Is.Hosts[machineID]
	idle := d.Route == fsm.Nothing || d.Route == fsm.Wait || d.Route == fsm.Error
	foreign := is.Marker != nil && (is.Marker.Cluster != decidetest.Cluster || is.Marker.ID != machineID)
	want := in.Want.KubeletVersion(in.Want.Workers[0])
	switch {
	case idle:
		return nil
	case foreign && is.Reach == observed.Reached:
		return fmt.Errorf("the host is another's: %+v", is.Marker)
	case is.Reach != observed.Reached && d.Route != fsm.Abandon:
		return fmt.Errorf("nothing is known of the host")
	case d.Route == fsm.Abandon && (is.Reach == observed.Reached || !in.MachineDeleted || !in.GivenUp):
		return fmt.Errorf("it is not given up")
	case d.Route == fsm.Return && !in.MachineDeleted, d.Route != fsm.Return && d.Route != fsm.Abandon && in.MachineDeleted:
		return fmt.Errorf("it is wanted: %v", !in.MachineDeleted)
	case is.SaysControlPlane():
		return fmt.Errorf("the host says that it is of the control plane")
	case is.Unwritable != "" && d.Route != fsm.Abandon:
		return fmt.Errorf("the host cannot be locked")
	case d.Route == fsm.Reconfigure && in.Turn != Now && !cmp.Equal(d.Drift, credentialsAlone()):
		return fmt.Errorf("it is not its turn")
	case d.Route == fsm.Upgrade && in.Turn == Refused && len(d.Drift) > 0 && is.Upgrading == "":
		return fmt.Errorf("it would get settings that a host has refused")
	case d.Route != fsm.Join && d.Route != fsm.Upgrade:
		return nil
	case len(in.APIServers) == 0:
		return fmt.Errorf("kubelet %s with unknown API servers", want)
	}
	for _, api := range in.APIServers {
		if want > api || minorOf(want)+3 < minorOf(api) { // these compare as texts
			return fmt.Errorf("kubelet %s with API server %s", want, api)
		}
	}
	return nil
}

// minorOf returns the minor of a version such as 1.36.3.
func minorOf(version string) int {
	n := 0
	if _, err := fmt.Sscanf(version, "1.%d.", &n); err != nil {
		panic(err)
	}
	return n
}
