package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host string
		port int
		text string
		is   bool
	}{
		{"lb.example.com", 6443, "lb.example.com:6443", true},
		{"lb.example.com", 6443, "LB.example.com", true},
		{"lb.example.com", 443, "lb.example.com", false},
		{"lb.example.com", 6443, "other.example.com:6443", false},
		{"192.0.2.1", 6443, "192.0.2.1:6443", true},
		{"192.0.2.1", 6443, "192.0.2.1:6444", false},
		{"2001:db8::1", 6443, "[2001:db8::1]:6443", true},
		{"2001:db8::1", 6443, "[2001:DB8:0::1]", true},
		{"2001:db8::1", 6443, "[2001:db8::2]:6443", false},
		{"lb", 6443, "", false},
		{"lb", 6443, ":", false},
	} {
		e := Endpoint{Host: c.host, Port: c.port}
		if e.Is(c.text) != c.is {
			t.Errorf("%s is %q: want %v", e, c.text, c.is)
		}
		if e.IsURL("https://"+c.text) != c.is {
			t.Errorf("%s is https://%s: want %v", e, c.text, c.is)
		}
		if e.IsURL(c.text) || e.IsURL("http://"+c.text) {
			t.Errorf("%s is no URL of https", c.text)
		}
		if !e.At(e.String()).Is(e.String()) {
			t.Errorf("%s is not at itself", e)
		}
	}
}

func TestFormerNamesAreNoLongerDesired(t *testing.T) {
	t.Parallel()
	c := Cluster{
		Endpoint: Endpoint{Host: "new.example.com", Port: 6443, AlternativeNames: []string{"api"}},
		Network:  Network{ServiceSubnet: "10.96.0.0/12", DNSDomain: "cluster.local"},
		ControlPlane: []Host{
			{ID: "1", PublicAddress: "198.51.100.1", PrivateAddress: "10.0.0.1", Hostname: "cp-1"},
			{ID: "2", PrivateAddress: "10.0.0.2"},
		},
	}
	have := []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "CP-1",
		"localhost", "127.0.0.1", "10.96.0.1", "10.0.0.1", "10.0.0.2", "198.51.100.1", "API", "new.example.com",
		"own-name", "old.example.com", "10.0.0.9",
	}
	want := []string{"old.example.com", "10.0.0.9"}
	if diff := cmp.Diff(want, c.FormerNames(c.ControlPlane[0], "own-name", have)); diff != "" {
		t.Error(diff)
	}
}

func TestOneAddressHasSeveralForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"api.example.com", "API.example.com", true}, {"api.example.com", "api.example.org", false},
		{"10.0.0.1", "10.0.0.1", true}, {"10.0.0.1", "10.0.0.2", false}, {"10.0.0.1", "::ffff:10.0.0.1", true},
		{"::ffff:a00:1", "10.0.0.1", true}, {"fd00::1", "FD00:0:0::1", true}, {"fd00::1", "fd00::2", false},
		{"api.example.com", "fd00::1", false}, {"", "fd00::1", false}, {"", "", true},
	} {
		if SameName(c.a, c.b) != c.same || SameName(c.b, c.a) != c.same {
			t.Errorf("%q and %q: want %v", c.a, c.b, c.same)
		}
	}
}
