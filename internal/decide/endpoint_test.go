package decide

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
)

// endpointAt returns the endpoint of a host and port.
func endpointAt(host string, port int) desired.Endpoint {
	return desired.Endpoint{Host: host, Port: port}
}

// clusterAtEndpoint returns a healthy cluster whose clients all use the endpoint with that name.
func clusterAtEndpoint(name string) Input {
	in := healthyCluster(3, 1)
	in.Want.Endpoint = endpointAt(name, 6443)
	in.Is.API.Endpoint = in.Want.Endpoint.String()
	for _, h := range in.Want.Hosts() {
		is := in.Is.Hosts[h.ID]
		is.Endpoint = in.Want.Endpoint.URL()
		if h.Role == desired.ControlPlane {
			is.AdminEndpoint, is.Endpoint = is.Endpoint, "https://"+h.PrivateAddress+":6443"
			is.APINames = append(in.Want.APINames(), "kubernetes", "10.0.0.1")
		}
		in.Is.Hosts[h.ID] = is
	}
	return in
}

// changeHost changes what one host says.
func (in *Input) changeHost(id string, change func(*observed.Host)) {
	is := in.Is.Hosts[id]
	change(&is)
	in.Is.Hosts[id] = is
}

func TestWhereTheEndpointMovesAndWhereItStays(t *testing.T) {
	t.Parallel()
	host := func(in *Input, i int) string { return in.Want.Hosts()[i].ID }
	for name, c := range map[string]struct {
		change  func(in *Input)
		limited bool
		route   fsm.Route
		later   string // a part of the reason why it moves later
	}{
		"the same":           {func(*Input) {}, false, fsm.Nothing, ""},
		"the same, as spelt": {func(in *Input) { in.Want.Endpoint.Host = "OLD.example.com" }, false, fsm.Nothing, ""},
		"the same, without its port": {func(in *Input) { in.Is.API.Endpoint = "old.example.com" }, false, fsm.Nothing,
			""},
		"another": {func(in *Input) { in.Want.Endpoint = endpointAt("10.9.0.9", 6443) }, false, fsm.MoveEndpoint,
			""},
		"another port":         {func(in *Input) { in.Want.Endpoint.Port = 443 }, false, fsm.MoveEndpoint, ""},
		"kubeadm does not say": {func(in *Input) { in.Is.API.Endpoint = "" }, false, fsm.Nothing, ""},
		"a worker dials another": {func(in *Input) {
			in.changeHost(host(in, 3), func(h *observed.Host) { h.Endpoint = "https://elsewhere:6443" })
		}, false, fsm.MoveEndpoint, ""},
		"a worker does not say what it dials": {func(in *Input) {
			in.changeHost(host(in, 3), func(h *observed.Host) { h.Endpoint = "" })
		}, false, fsm.Nothing, ""},
		"an administrator dials another": {func(in *Input) {
			in.changeHost(host(in, 1), func(h *observed.Host) { h.AdminEndpoint = "https://elsewhere:6443" })
		}, false, fsm.MoveEndpoint, ""},
		"a control plane's kubelet dials the endpoint": {func(in *Input) {
			in.changeHost(host(in, 1), func(h *observed.Host) { h.Endpoint = in.Want.Endpoint.URL() })
		}, false, fsm.Nothing, ""},
		"a new alternative name": {func(in *Input) { in.Want.Endpoint.AlternativeNames = []string{"api"} }, false,
			fsm.MoveEndpoint, ""},
		"a name is kept that a host lacks": {func(in *Input) {
			in.Is.API.Record.FormerEndpoints = []string{"older.example.com"}
		}, false, fsm.MoveEndpoint, ""},
		"one of several control-plane hosts": {func(in *Input) {
			in.Want.Endpoint.Host = in.Want.ControlPlane[1].PrivateAddress
		}, false, fsm.Error, ""},
		"limited": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.Addons = map[string]string{"flannel": "made for the new endpoint"}
			in.System = map[string]string{"kube-proxy": ""}
			in.Is.API.Compared = map[string]observed.Comparison{
				"kube-proxy": {Settings: []observed.Difference{{Object: "ConfigMap", Fields: []string{"server"}}}},
			}
		}, true, fsm.Nothing, "every host"},
		"a silent control-plane host": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.Is.Hosts[host(in, 2)] = observed.Host{ID: host(in, 2), Reach: observed.Unreachable}
		}, false, fsm.Instruct, "healthy"},
		"a silent worker": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.Is.Hosts[host(in, 3)] = observed.Host{ID: host(in, 3), Reach: observed.Unreachable}
		}, false, fsm.Instruct, "its Node is Ready"},
		"a silent worker whose Node is not Ready": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.Is.Hosts[host(in, 3)] = observed.Host{ID: host(in, 3), Reach: observed.Unreachable}
			in.Is.API.Nodes[3].Ready = observed.No
		}, false, fsm.MoveEndpoint, ""},
		"a control-plane host that is being upgraded": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.allOlder("1.36.1")
			in.changeHost(host(in, 1), func(h *observed.Host) {
				h.Kubelet.Version, h.Upgrading = in.Want.KubernetesVersion, in.Want.KubernetesVersion
				h.APIServer = observed.No
			})
		}, false, fsm.Upgrade, "being upgraded"},
		"an API server with unknown names": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.changeHost(host(in, 1), func(h *observed.Host) { h.APINames = nil })
		}, false, fsm.Nothing, "API server certificate on cp-2 are unknown"},
		"a member that the manifest does not have": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.Is.Etcd.Members = append(in.Is.Etcd.Members, observed.Member{
				ID: "f", Name: "stranger", PeerURLs: []string{"https://10.7.7.7:2380"}, Healthy: observed.Yes,
			})
		}, false, fsm.Nothing, "stranger"},
		"no API answers, and no host has moved": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.Is.API = observed.API{Reached: observed.No}
		}, false, fsm.Instruct, "healthy"},
		"no API answers, and an unapproved host dials another": {func(in *Input) {
			in.Is.API = observed.API{Reached: observed.No}
			in.changeHost(host(in, 0), func(h *observed.Host) {
				h.AdminEndpoint, h.FirstContact = "https://attacker.example.com:6443", "SHA256:aaaa"
			})
		}, false, fsm.Instruct, ""},
		"no API answers, and an administrator uses the local one": {func(in *Input) {
			in.Is.API = observed.API{Reached: observed.No}
			for _, h := range in.Want.ControlPlane {
				in.changeHost(h.ID, func(h *observed.Host) { h.AdminEndpoint = "https://[::1]:6443" })
			}
		}, false, fsm.Instruct, ""},
		"no API answers, and one has moved": {func(in *Input) {
			in.Want.Endpoint.Host = "new.example.com"
			in.Is.API = observed.API{Reached: observed.No}
			in.changeHost(host(in, 0), func(h *observed.Host) { h.AdminEndpoint = "https://new.example.com:6443" })
		}, false, fsm.Instruct, ""},
	} {
		in := clusterAtEndpoint("old.example.com")
		c.change(&in)
		in = Settle(in, c.limited)
		d := Decide(in)
		if d.Route != c.route || (c.later == "") != (in.Want.Endpoint.Later == "") ||
			!strings.Contains(in.Want.Endpoint.LaterWhy, c.later) {
			t.Errorf("%s: %s, later %q because %q\n%+v", name, d.Route, in.Want.Endpoint.Later,
				in.Want.Endpoint.LaterWhy, d.Problems)
		}
		if in.Want.Endpoint.Later != "" && in.Want.Endpoint.Host != "old.example.com" {
			t.Errorf("%s: it stays at %s", name, in.Want.Endpoint)
		}
	}
}

// Undesired names are dropped only when no client can be dialling them.
func TestFormerNamesAreDroppedWhenNoClientDialsThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(in *Input, worker string)
		inUse  bool
	}{
		"all dial the new one": {func(*Input, string) {}, false},
		"a worker is silent": {func(in *Input, worker string) {
			in.Is.Hosts[worker] = observed.Host{ID: worker, Reach: observed.Unreachable}
		}, true},
		"a worker dials the old one": {func(in *Input, worker string) {
			in.changeHost(worker, func(h *observed.Host) { h.Endpoint = "https://old.example.com:6443" })
		}, true},
		"a worker does not say": {func(in *Input, worker string) {
			in.changeHost(worker, func(h *observed.Host) { h.Endpoint = "" })
		}, true},
		"a Node without a host": {func(in *Input, _ string) {
			in.Is.API.Nodes = append(in.Is.API.Nodes, observed.Node{Name: "stranger", Ready: observed.Yes})
		}, true},
		"the cluster names the old one": {func(in *Input, _ string) {
			in.Is.API.Endpoint = "old.example.com:6443"
		}, true},
		"kube-proxy has other settings": {func(in *Input, _ string) {
			in.Is.API.Compared["kube-proxy"] = observed.Comparison{
				Settings: []observed.Difference{{Object: "ConfigMap", Fields: []string{"server"}}},
			}
		}, true},
		"kube-proxy could not be compared": {func(in *Input, _ string) {
			in.Is.API.Compared["kube-proxy"] = observed.Comparison{Problem: "forbidden"}
		}, true},
		"kube-proxy was not compared": {func(in *Input, _ string) { delete(in.Is.API.Compared, "kube-proxy") }, true},
		"some hosts only": {func(in *Input, worker string) {
			in.Limit = map[string]bool{worker: true}
		}, true},
	} {
		in := clusterAtEndpoint("new.example.com")
		in.Is.API.Record.FormerEndpoints = []string{"old.example.com"}
		for _, h := range in.Want.ControlPlane {
			in.changeHost(h.ID, func(h *observed.Host) { h.APINames = append(h.APINames, "old.example.com") })
		}
		in.DropNames = true
		in.System = map[string]string{"kube-proxy": ""}
		in.Is.API.Compared = map[string]observed.Comparison{"kube-proxy": {}}
		c.change(&in, in.Want.Workers[0].ID)
		d := Decide(Settle(in, false))
		inUse := slices.ContainsFunc(d.Problems, func(p problem.Problem) bool { return p.Code == problem.NamesInUse })
		if inUse != c.inUse || !inUse && (d.Route != fsm.MoveEndpoint || !d.Publish || len(d.Names) != 3) {
			t.Errorf("%s: %s, %+v", name, d.Route, d.Problems)
		}
		for _, n := range d.Names {
			if diff := cmp.Diff(Names{Drop: []string{"old.example.com"}}, n); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// What has moved to the manifest's endpoint stays there, and keeps its name, while the rest waits.
func TestHalfAMoveIsNotTakenBack(t *testing.T) {
	t.Parallel()
	in := clusterAtEndpoint("old.example.com")
	in.Want.Endpoint.Host = "new.example.com"
	for _, h := range in.Want.ControlPlane {
		in.changeHost(h.ID, func(h *observed.Host) {
			h.APINames = append(h.APINames, "new.example.com")
			h.AdminEndpoint = "https://new.example.com:6443"
		})
	}
	dials := in.Want.Workers[0].ID
	in.changeHost(dials, func(h *observed.Host) { h.Endpoint = "https://new.example.com:6443" })
	in = Settle(in, true)
	if d := Decide(in); d.Route != fsm.Nothing || !slices.Contains(in.Want.Endpoint.Required(), "new.example.com") {
		t.Errorf("%s: diallers %v, names %v of %v", d.Route, d.Diallers, d.Names, in.Want.Endpoint)
	}
	in.changeHost(dials, func(h *observed.Host) { h.Endpoint = "https://third.example.com:6443" })
	if d := Decide(in); d.Route != fsm.MoveEndpoint || !slices.Equal(d.Diallers, []string{dials}) {
		t.Errorf("%s: diallers %v", d.Route, d.Diallers)
	}
}

// An endpoint that fails with one host gives a warning before the cluster exists, and only then.
func TestAnEndpointThatIsAHostIsNamedBeforeItIsTooLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in     Input
		host   string
		warned bool
	}{
		"three bare hosts":       {bareHosts(3), "10.0.0.2", true},
		"by name":                {bareHosts(3), "CP-2", true},
		"a load balancer":        {bareHosts(3), "lb.example.com", false},
		"a single one":           {bareHosts(1), "10.0.0.1", false},
		"a cluster that has one": {healthyCluster(3, 0), "10.0.0.1", false},
	} {
		c.in.Want.Endpoint.Host = c.host
		warned := slices.ContainsFunc(Decide(c.in).Warnings, func(p problem.Problem) bool {
			return p.Code == problem.EndpointIsHost
		})
		if warned != c.warned {
			t.Errorf("%s: warned %t", name, warned)
		}
	}
}

// bareHosts returns the input before an installation.
func bareHosts(controlPlanes int) Input {
	in := healthyCluster(controlPlanes, 1)
	in.bareWorld()
	return in
}

// Clients that have moved trust a host that joins during a move. If a recovery cannot read the cluster record, so do
// clients that have not moved.
func TestWhoJoinsInAMoveOfTheEndpointHasBothNames(t *testing.T) {
	t.Parallel()
	begun := func(in *Input) { // the API servers have the new name, and cp-1 dials it
		in.Want.Endpoint = endpointAt("new.example.com", 6443)
		for _, h := range in.Want.ControlPlane {
			in.changeHost(h.ID, func(is *observed.Host) { is.APINames = append(is.APINames, "new.example.com") })
		}
	}
	for name, c := range map[string]struct {
		change func(*Input)
		want   []string
	}{
		"it has begun, and this is about some hosts": {begun, []string{"old.example.com", "new.example.com"}},
		"it has begun, and this manifest has the endpoint of before": {func(in *Input) {
			begun(in)
			in.Want.Endpoint = endpointAt("old.example.com", 6443)
		}, []string{"old.example.com", "new.example.com"}},
		"one API server alone has the new name, so no client dials it": {func(in *Input) {
			in.changeHost("192.0.0.1", func(is *observed.Host) { is.APINames = append(is.APINames, "new.example.com") })
		}, []string{"old.example.com"}},
		"one host lacks it, which has not joined": {func(in *Input) {
			begun(in)
			in.Want.Endpoint = endpointAt("old.example.com", 6443)
			in.changeHost("192.0.0.3", func(is *observed.Host) {
				is.APINames, is.Marker = desired.Missing(is.APINames, []string{"new.example.com"}), nil
			})
		}, []string{"old.example.com", "new.example.com"}},
		"no host with an approved key says so": {func(in *Input) {
			begun(in)
			in.Want.Endpoint = endpointAt("old.example.com", 6443)
			for _, h := range in.Want.ControlPlane {
				in.changeHost(h.ID, func(is *observed.Host) { is.FirstContact = "ssh-ed25519 AAAA" })
			}
		}, []string{"old.example.com"}},
		"one API server lacks it, on an unapproved host": {func(in *Input) {
			begun(in)
			in.Want.Endpoint = endpointAt("old.example.com", 6443)
			in.changeHost("192.0.0.2", func(is *observed.Host) {
				is.APINames = desired.Missing(is.APINames, []string{"new.example.com"})
				is.FirstContact = "ssh-ed25519 AAAA"
			})
		}, []string{"old.example.com"}},
		"it has begun, and the names of before are dropped": {func(in *Input) {
			begun(in)
			in.Want.Endpoint, in.DropNames = endpointAt("old.example.com", 6443), true
		}, []string{"old.example.com"}},
		"it has not begun": {func(in *Input) { in.Want.Endpoint = endpointAt("new.example.com", 6443) },
			[]string{"old.example.com"}},
		"the API does not answer": {func(in *Input) {
			begun(in)
			in.Is.API = observed.API{Reached: observed.No}
			for _, h := range in.Want.ControlPlane {
				in.changeHost(h.ID, func(is *observed.Host) { is.AdminEndpoint = in.Want.Endpoint.URL() })
			}
		}, []string{"new.example.com", "old.example.com"}},
	} {
		in := clusterAtEndpoint("old.example.com")
		c.change(&in)
		if got := Settle(in, true).Want.Endpoint.Required(); !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
