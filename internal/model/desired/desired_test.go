package desired_test

import (
	"testing"

	"kubeone/internal/model/desired"
)

func TestAHostIsFoundByItsIDBeforeAnothersAddress(t *testing.T) {
	t.Parallel()
	c := desired.Cluster{ // two workers were found at each other's address
		ControlPlane: []desired.Host{
			{ID: "cp", PublicAddress: "192.0.2.1", PrivateAddress: "10.0.0.1", Hostname: "Main"},
		},
		Workers: []desired.Host{
			{ID: "192.0.2.11", PublicAddress: "192.0.2.12", Hostname: "worker-1"},
			{ID: "192.0.2.12", PublicAddress: "192.0.2.11", Hostname: "worker-2"},
		},
	}
	for name, want := range map[string]string{
		"192.0.2.11": "192.0.2.11", "192.0.2.12": "192.0.2.12", "worker-2": "192.0.2.12",
		"main": "cp", "10.0.0.1": "cp", "192.0.2.1": "cp", "192.0.2.99": "", "": "",
	} {
		if h, ok := c.Host(name); h.ID != want || ok != (want != "") {
			t.Errorf("%q is %q, %t", name, h.ID, ok)
		}
	}
}
