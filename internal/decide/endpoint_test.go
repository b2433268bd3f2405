package decide

import (
	"slices"
	"testing"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/desired"
	"kubeone/internal/observed"
	"kubeone/internal/problem"
)

// What every kubelet dials is not changed by a line of the manifest, or by the order of its hosts.
func TestAnotherEndpointStopsEverything(t *testing.T) {
	t.Parallel()
	at := func(host string, port int) desired.Endpoint { return desired.Endpoint{Host: host, Port: port} }
	for name, c := range map[string]struct {
		has     string
		want    desired.Endpoint
		api     observed.Tri
		stopped bool
	}{
		"the same":                   {"lb.example.com:6443", at("LB.example.com", 6443), observed.Yes, false},
		"the same, without its port": {"lb.example.com", at("lb.example.com", 6443), observed.Yes, false},
		"the same, IPv6":             {"[fd00::1]:6443", at("fd00::1", 6443), observed.Yes, false},
		"IPv6 without its port":      {"[fd00::1]", at("fd00::1", 6443), observed.Yes, false},
		"another":                    {"lb.example.com:6443", at("10.0.0.9", 6443), observed.Yes, true},
		"another port":               {"lb.example.com:6443", at("lb.example.com", 443), observed.Yes, true},
		"kubeadm does not say":       {"", at("10.0.0.9", 6443), observed.Yes, false},
		"nobody answers":             {"", at("10.0.0.9", 6443), observed.No, false},
	} {
		in := healthy(3, 1)
		in.Want.Endpoint, in.Is.API.Endpoint, in.Is.API.Reached = c.want, c.has, c.api
		d := Decide(in)
		stopped := d.Route == fsm.Error && slices.ContainsFunc(d.Problems, func(p problem.Problem) bool {
			return p.Code == problem.EndpointChanged
		})
		if stopped != c.stopped {
			t.Errorf("%s: %s, %+v", name, d.Route, d.Problems)
		}
	}
}

// Before a cluster is made, and only then, the endpoint that goes with one of its hosts is worth a warning.
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
		"a cluster that has one": {healthy(3, 0), "10.0.0.1", false},
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

// bareHosts is the input before an installation.
func bareHosts(controlPlanes int) Input {
	in := healthy(controlPlanes, 1)
	in.nobody()
	return in
}
