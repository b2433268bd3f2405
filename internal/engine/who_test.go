package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

// worker makes a fake host a worker of the cluster with that ID.
func worker(p *player, id string) {
	p.say("absent\t/etc/kubeone/marker", "exists\t/etc/kubeone/marker\nfile\t/etc/kubeone/marker:cluster=demo\n"+
		"file\t/etc/kubeone/marker:role=worker\nfile\t/etc/kubeone/marker:complete=yes\n"+
		"file\t/etc/kubeone/marker:id="+id+"\nfile\t/etc/kubeone/marker:id-derived=no")
}

// twoWorkers gives the cluster workers a and b, with IDs.
func twoWorkers(c *Config) {
	c.Want.Workers = nil
	for id, address := range map[string]string{"a": "192.0.2.21", "b": "192.0.2.22"} {
		c.Want.Workers = append(c.Want.Workers, desired.Host{
			ID: id, HasOwnID: true, Role: desired.Worker, PublicAddress: address, PrivateAddress: address,
		})
	}
}

// Changes to a host go to the machine that says it is that host, wherever the manifest has it.
func TestAHostIsTheMachineThatSaysSo(t *testing.T) {
	t.Parallel()
	s := play(t, twoWorkers)
	worker(s.hosts["a"], "b") // at the address that the manifest gives a
	worker(s.hosts["b"], "a")
	p, err := s.Propose(t.Context(), Apply{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.HostOf(p, "a"); got != s.hosts["b"] {
		t.Errorf("the way to host a leads to %s", got.Name())
	}
	addresses := map[string]string{}
	for _, h := range p.Want.Workers {
		addresses[h.ID] = h.PublicAddress
	}
	if diff := cmp.Diff(map[string]string{"a": "192.0.2.22", "b": "192.0.2.21"}, addresses); diff != "" {
		t.Error(diff)
	}
}
