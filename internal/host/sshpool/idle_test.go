package sshpool_test

import (
	"testing"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

func TestOfManyIdleConnectionsThoseLeftLongestAgoAreClosed(t *testing.T) {
	t.Parallel()
	p := newPool(t, sshpool.Options{MaxIdle: 2})
	hosts := make([]host.Host, 0, 4)
	for range cap(hosts) {
		s := sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()})
		hosts = append(hosts, p.Host(targetOf(t, s)))
	}
	for _, h := range hosts {
		runScript(t, h, ":")
	}
	if n := p.Stats().Connections; n != 4 {
		t.Fatalf("%d connections for one command on each of 4 hosts", n)
	}
	runScript(t, hosts[3], ":")
	runScript(t, hosts[2], ":")
	if n := p.Stats().Connections; n != 4 {
		t.Errorf("%d connections after commands on the two hosts that were used last, want 4", n)
	}
	if got := runScript(t, hosts[0], "echo again"); got != "again\n" {
		t.Errorf("a host whose connection was closed as idle printed %q", got)
	}
	if n := p.Stats().Connections; n != 5 {
		t.Errorf("%d connections after a command on a host whose connection was closed, want 5", n)
	}
}

func TestAConnectionWithATunnelIsNotIdle(t *testing.T) {
	t.Parallel()
	p := newPool(t, sshpool.Options{MaxIdle: 1})
	far := sshtest.Start(t, sshtest.Options{})
	first := p.Host(targetOf(t, sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()})))
	tunnel, err := first.Dial(testContext(t), "tcp", hostPort(far))
	must(t, err)
	for range 3 {
		runScript(t, p.Host(targetOf(t, sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()}))), ":")
	}
	if _, err := tunnel.Write([]byte("SSH-2.0-test\r\n")); err != nil {
		t.Errorf("the tunnel was closed: %v", err)
	}
	before := p.Stats().Connections
	runScript(t, first, ":")
	if after := p.Stats().Connections; after != before {
		t.Errorf("%d connections, want %d: the one with the tunnel is there", after, before)
	}
	must(t, tunnel.Close())
	_ = tunnel.Close() // it is already closed and released
}

func TestABastionIsNotClosedAsIdle(t *testing.T) {
	t.Parallel()
	bastion := sshtest.Start(t, sshtest.Options{})
	p := newPool(t, sshpool.Options{MaxIdle: 1})
	behind := targetOf(t, sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()}))
	via := targetOf(t, bastion)
	via.Name = "bastion"
	behind.Bastions = []host.Target{via}
	runScript(t, p.Host(behind), ":")
	for range 3 {
		runScript(t, p.Host(targetOf(t, sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()}))), ":")
	}
	runScript(t, p.Host(behind), ":")
	if n := p.Stats().Hosts[via.DisplayName()].Connections; n != 1 {
		t.Errorf("%d connections to the bastion, want 1", n)
	}
}
