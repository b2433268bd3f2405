package engine

import (
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/decide/condition"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
	"kubeone/internal/testutil/decidetest"
	"kubeone/internal/testutil/sshtest"
)

// A worker that accepts a connection and stays silent is probed once. Its Node is still Ready and nothing depends on
// it, so a second probe would only take time.
func TestAWorkerThatHangsIsProbedOnce(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // only the kernel accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	key := sshtest.WriteKey(t, "")
	pool := sshpool.New(sshpool.Options{
		IgnoreSSHConfig: true, HomeDir: t.TempDir(), HandshakeTimeout: 50 * time.Millisecond,
	})
	t.Cleanup(func() { _ = pool.Close() })
	hanging := pool.Host(host.Target{
		Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, AgentSocket: "none",
		KeyFile: key.Path, HostKeys: []ssh.PublicKey{key.Public()},
	})
	looks, clock := 0, time.Unix(0, 0)
	s := play(t, func(c *Config) {
		c.Now = func() time.Time { clock = clock.Add(10 * time.Second); return clock }
		c.Observe = func(ctx context.Context, _ probe.Request) (probe.Result, error) {
			looks++
			seen, err := probe.Run(ctx, probe.Request{Targets: []probe.Target{{ID: playedWorker, Host: hanging}}})
			return probe.Result{World: living(c.Want, seen.World.Hosts[playedWorker])}, err
		}
	})
	p, err := s.Propose(t.Context(), Apply{})
	p, err = s.ProposeUntilReady(t.Context(), p, err, time.Minute, func([]Pending, time.Duration) {})
	if err != nil {
		t.Fatal(err)
	}
	if h := p.Decision().Hosts[playedWorker]; h.Condition != condition.Unreachable ||
		!hasOnlySilentHosts(p.pendingComponents()) {
		t.Errorf("the worker is %+v, pending are %v", h, p.pendingComponents())
	}
	if looks != 1 || len(p.Pending(nil)) > 0 || len(p.pendingComponents()) != 1 || p.Matches() {
		t.Errorf("probed %d times; pending: %v; matches: %t", looks, p.Pending(nil), p.Matches())
	}
}

// living is the world of a healthy cluster, except for one host with this observation.
func living(want desired.Cluster, one observed.Host) observed.World {
	is := observed.World{Hosts: map[string]observed.Host{}}
	is.API = observed.API{Reached: observed.Yes, Version: want.KubernetesVersion}
	is.Etcd.Reached = observed.Yes
	for _, h := range want.Hosts() {
		is.Hosts[h.ID] = decidetest.Member(h)
		node := decidetest.ReadyNode(h)
		if node.Name == "" {
			node.Name = "node-" + h.ID
		}
		is.API.Nodes = append(is.API.Nodes, node)
	}
	is.Etcd.Members = []observed.Member{decidetest.Voter(want.ControlPlane[0])}
	is.Hosts[one.ID] = one
	return is
}
