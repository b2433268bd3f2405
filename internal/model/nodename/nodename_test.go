package nodename

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// testCluster returns a cluster with a control-plane host that the manifest names, two workers that it does not name,
// and a pool.
func testCluster() (desired.Cluster, observed.API) {
	c := desired.Cluster{
		ControlPlane: []desired.Host{
			{ID: "cp", Hostname: "cp-1", PublicAddress: "192.0.2.1", PrivateAddress: "10.0.0.1"},
		},
		Workers: []desired.Host{
			{ID: "a", PublicAddress: "192.0.2.2", PrivateAddress: "10.0.0.2"},
			{ID: "b", PublicAddress: "192.0.2.3", PrivateAddress: "10.0.0.3"},
		},
		Network: desired.Network{ServiceSubnet: "10.96.0.0/12", DNSDomain: "cluster.local"},
	}
	c.Endpoint.Host, c.Endpoint.AlternativeNames = "api.example.com", []string{"api2.example.com", "*.apis.example.com"}
	return c, observed.API{
		Reached: observed.Yes,
		Nodes:   []observed.Node{{Name: "cp-1"}, {Name: "worker-b"}, {Name: "pool-1"}},
		Record: &observed.Record{
			Nodes: map[string]string{"b": "worker-b", "a": "worker-gone"}, FormerEndpoints: []string{"old.example.com"},
		},
		Pool: &observed.Pool{
			Hosts:    []observed.PoolHost{{Name: "pool-1", Address: "10.0.1.1"}, {Name: "pool-2"}},
			Machines: []observed.Machine{{Namespace: "kube-system", Name: "m", Node: "machine-node"}},
		},
	}
}

func TestNamesHeldByOthers(t *testing.T) {
	t.Parallel()
	names := Of(testCluster())
	for name, want := range map[string]string{
		"worker-a": "", "worker-gone": "", "10.0.0.2": "", "kubernetes-worker": "", "svc-1": "", "local": "",

		"api.example.com": "the API endpoint", "API.example.com.": "the API endpoint",
		"api2.example.com": "the API endpoint", "old.example.com": "the former API endpoint",
		"a.apis.example.com": "the API endpoint", "*.apis.example.com": "the API endpoint",
		"a.b.apis.example.com": "", "apis.example.com": "",
		"localhost": "every host's own name", "127.0.0.1": "no host's address", "10.96.0.1": "no host's address",
		"kubernetes": "the name of a Service", "kubernetes.default": "the name of a Service",
		"kubernetes.default.svc": "the name of a Service", "x.cluster.local": "the name of a Service",
		"cluster.local": "the name of a Service", "svc": "the name of a Service",
		"cp-1": "the name of cp in the manifest", "10.0.0.3": "the name of b in the manifest", "worker-b": "the Node of b",
		"pool-1": "the Host pool-1", "pool-2": "the Host pool-2", "10.0.1.1": "the Host pool-1",
		"machine-node": "the Node of Machine kube-system/m",
	} {
		if got := names.Holder("a", name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A host's name in the record stays its own, whatever users change in objects of the pool.
func TestRecordedNameBelongsToHost(t *testing.T) {
	t.Parallel()
	c, api := testCluster()
	api.Pool.Hosts = append(api.Pool.Hosts, observed.PoolHost{Name: "worker-b"})
	names := Of(c, api)
	if claim := names.Claim(c.Workers[1], "worker-b"); !claim.Known || claim.Check() != nil {
		t.Errorf("%+v: %v", claim, claim.Check())
	}
	api.Record.Nodes["b"], api.Nodes[1].Name = "api.example.com", "api.example.com"
	if claim := Of(c, api).Claim(c.Workers[1], "api.example.com"); claim.Check() == nil {
		t.Errorf("the name of the endpoint: %+v", claim)
	}
	if claim := names.Claim(c.ControlPlane[0], "cp-1"); !claim.Known || claim.Check() != nil {
		t.Errorf("given by the manifest: %+v", claim)
	}
}

// A Node's certificate is also for its name, so a name that is an address must be the host's.
func TestClaimOfAddressAsName(t *testing.T) {
	t.Parallel()
	c, api := testCluster()
	api.Nodes = append(api.Nodes, observed.Node{Name: "10.0.9.2"})
	api.Record.Nodes["b"] = "10.0.9.2"
	names := Of(c, api)
	for name, may := range map[string]bool{
		"10.0.0.2": true, "192.0.2.2": true, "worker": true,
		"10.0.1.2": false, "203.0.113.9": false, "2001:db8::9": false,
	} {
		if err := names.Claim(c.Workers[0], name).Check(); (err == nil) != may {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := names.Claim(c.Workers[1], "10.0.9.2").Check(); err != nil {
		t.Errorf("as recorded: %v", err)
	}
	named := desired.Host{ID: "n", Hostname: "10.0.1.2"}
	if err := names.Claim(named, "10.0.1.2").Check(); err != nil {
		t.Errorf("given by the manifest: %v", err)
	}
}

func TestCheckNode(t *testing.T) {
	t.Parallel()
	own := []string{"192.0.2.2", "10.0.0.2", "2001:db8::2"}
	for name, c := range map[string]struct {
		claim     Claim
		addresses []string
		owner     string
		may       bool
	}{
		"its address":                   {Claim{Names: own}, []string{"10.0.0.2", "worker-a"}, "", true},
		"its address, other spelling":   {Claim{Names: own}, []string{"2001:DB8:0::2"}, "", true},
		"a Node with a name only":       {Claim{Names: own}, []string{"worker-a"}, "", true},
		"another's address":             {Claim{Names: own}, []string{"10.0.0.3"}, "", false},
		"a Machine's at its address":    {Claim{Names: own}, []string{"10.0.0.2"}, "uid", false},
		"a known name":                  {Claim{Names: own, Known: true}, []string{"10.0.0.3"}, "", true},
		"a Machine's own":               {Claim{Owner: "uid", Known: true}, []string{"10.0.0.3"}, "uid", true},
		"a Machine, of another":         {Claim{Owner: "uid", Known: true}, []string{"10.0.0.2"}, "other", false},
		"one joined by hand":            {Claim{Owner: "uid", Names: own}, []string{"10.0.0.3"}, "", false},
		"a Machine that lost its label": {Claim{Owner: "uid", Names: own}, []string{"10.0.0.2"}, "", true},
	} {
		labels := map[string]string{}
		if c.owner != "" {
			labels[desired.OwnerLabel] = c.owner
		}
		if err := c.claim.CheckNode(c.addresses, labels); (err == nil) != c.may {
			t.Errorf("%s: %v", name, err)
		}
	}
}
