package sshpool_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/closedport"
	"kubeone/internal/testutil/short"
	"kubeone/internal/testutil/sshtest"
)

// chain returns two bastions and a host behind them, each with its own key.
func chain(t *testing.T, inner sshtest.Options) (target host.Target, servers [3]*sshtest.Server) {
	t.Helper()
	servers = [3]*sshtest.Server{sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, inner),
		sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()})}
	names := []string{"outer", "inner", "node-1"}
	var hops []host.Target
	for i, s := range servers {
		hop := targetOf(t, s)
		hop.Name = names[i]
		hops = append(hops, hop)
	}
	hops[2].Bastions = hops[:2]
	return hops[2], servers
}

func TestBastionChain(t *testing.T) {
	t.Parallel()
	target, servers := chain(t, sshtest.Options{})
	p := newPool(t, sshpool.Options{MaxDials: 1}) // a hop waiting for its bastion holds no slot
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			if got := runScript(t, p.Host(target), "echo $1", fmt.Sprint(i)); got != fmt.Sprintln(i) {
				t.Errorf("got %q", got)
			}
		})
	}
	wg.Wait()
	for i, s := range servers {
		if s.Connections() != 1 {
			t.Errorf("server %d has %d connections", i, s.Connections())
		}
	}
	if s := p.Stats(); s.Connections != 3 || s.Hosts["outer"].Tunnels != 1 || s.Hosts["node-1"].Commands != 5 {
		t.Errorf("%+v", s)
	}
}

func TestHostsBehindOneBastionShareIt(t *testing.T) {
	t.Parallel()
	bastion := sshtest.Start(t, sshtest.Options{})
	nodes := sshtest.Start(t, sshtest.Options{AllLoopback: true})
	target := targetOf(t, nodes)
	target.Bastions = []host.Target{targetOf(t, bastion)}
	p := newPool(t, sshpool.Options{})
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			target := target
			target.Address = fmt.Sprintf("127.0.2.%d", i+1)
			if _, err := p.Host(target).Run(testContext(t), host.Cmd{Script: ":"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if bastion.Connections() != 1 || nodes.Connections() != 10 {
		t.Errorf("%d and %d connections", bastion.Connections(), nodes.Connections())
	}
}

func TestEveryHopIsVerified(t *testing.T) {
	t.Parallel()
	for hop := range 3 {
		t.Run(fmt.Sprint(hop), func(t *testing.T) {
			t.Parallel()
			target, servers := chain(t, sshtest.Options{})
			wrong := []ssh.PublicKey{newKey(t).PublicKey()}
			if hop == 2 {
				target.HostKeys = wrong
			} else {
				target.Bastions[hop].HostKeys = wrong
			}
			_, err := newPool(t, sshpool.Options{}).Host(target).Run(testContext(t), host.Cmd{Script: ":"})
			wantClass(t, err, host.HostKey)
			var changed *host.HostKeyChangedError
			if !errors.As(err, &changed) || changed.Host != hostPort(servers[hop]) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFirstContactWithABastionIsAFirstContactWithItsHosts(t *testing.T) {
	t.Parallel()
	target, _ := chain(t, sshtest.Options{})
	target.Bastions[0].HostKeys = nil
	p := newPool(t, sshpool.Options{KnownHosts: host.PolicyProbe})
	h := p.Host(target)
	runScript(t, h, ":")
	_, err := h.Run(testContext(t), host.Cmd{Script: ":", Secret: true})
	if !errors.Is(err, host.ErrNotApproved) || !strings.Contains(err.Error(), "outer") {
		t.Errorf("got %v", err)
	}
	must(t, p.Approve(p.FirstContacts()...))
	_, err = h.Run(testContext(t), host.Cmd{Script: ":", Secret: true})
	must(t, err)
}

func TestTroubleOnTheWay(t *testing.T) {
	t.Parallel()
	dead, _ := chain(t, sshtest.Options{})
	dead.Bastions[0].Port = closedport.New(t)
	beyond, _ := chain(t, sshtest.Options{})
	beyond.Port = closedport.New(t)
	forbidden, _ := chain(t, sshtest.Options{NoForwarding: true})
	hung, _ := chain(t, sshtest.Options{})
	hung.Port = sshtest.Start(t, sshtest.Options{Silent: true}).Port()
	for name, c := range map[string]struct {
		target host.Target
		limit  time.Duration // time for the bastions, however busy the machine is; 0: the pool's default
		words  []string
	}{
		"the first hop is down":     {dead, 0, []string{"node-1: go through its bastion", "outer (root@", "refused"}},
		"the host is down":          {beyond, 0, []string{"node-1 (root@", "from bastion inner", "refused"}},
		"a bastion forbids tunnels": {forbidden, 0, []string{"from bastion inner", "AllowTcpForwarding"}},
		"the host hangs":            {hung, 5 * time.Second, []string{"node-1 (root@", "no answer to the handshake"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newPool(t, sshpool.Options{HandshakeTimeout: c.limit}).Host(c.target).
				Run(testContext(t), host.Cmd{Script: ":"})
			wantClass(t, err, host.Unreachable)
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
}

func TestSSHConfig(t *testing.T) {
	t.Parallel()
	short.Tool(t, "ssh")
	target, servers := chain(t, sshtest.Options{})
	home := t.TempDir()
	known := knownHosts(t)
	var lines []string
	for _, s := range servers {
		lines = append(lines, fmt.Sprintf("[127.0.0.1]:%d %s", s.Port(), ssh.MarshalAuthorizedKey(s.HostKey())))
	}
	writeFile(t, known, strings.Join(lines, ""))
	writeFile(t, filepath.Join(home, ".ssh", "config"), fmt.Sprintf(`
Match exec "false"
  User nobody
Match exec "true"
  ServerAliveInterval 1
Host node outer inner
  HostName 127.0.0.1
  IdentityFile %s
  IdentityFile ~/.ssh/missing
  UserKnownHostsFile %s /dev/null
Host node
  Port %d
  User root
  ProxyJump root@outer:%d,ssh://inner:%d
Host commanded
  ProxyCommand nc %%h %%p
Host circle
  ProxyJump other
Host other
  ProxyJump circle
`, target.KeyFile, known, servers[2].Port(), servers[0].Port(), servers[1].Port()))
	var warned []string
	options := sshpool.Options{HomeDir: home, Warn: func(s string) { warned = append(warned, s) }}
	p := newPool(t, options)

	t.Run("fills what the manifest leaves open", func(t *testing.T) {
		if got := runScript(t, p.Host(host.Target{Address: "node"}), "echo ok"); got != "ok\n" {
			t.Errorf("got %q", got)
		}
		if s := p.Stats(); s.Connections != 3 {
			t.Errorf("%+v", s)
		}
		if len(warned) != 0 {
			t.Errorf("warned %q", warned)
		}
	})
	t.Run("the manifest wins", func(t *testing.T) {
		err := p.Check(host.Target{Address: "node", KeyFile: "/nonexistent/key"})
		if !errors.Is(err, host.ErrKeyFile) {
			t.Errorf("got %v", err)
		}
		_, err = p.Host(host.Target{
			Address:  "node",
			Port:     1,
			User:     "deploy",
			Bastions: target.Bastions[:1],
		}).Run(testContext(t), host.Cmd{Script: ":"})
		wantClass(t, err, host.Unreachable)
		if !strings.Contains(err.Error(), "deploy@127.0.0.1:1") ||
			!strings.Contains(err.Error(), "from bastion outer") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("disabled", func(t *testing.T) {
		none := options
		none.IgnoreSSHConfig = true
		_, err := newPool(t, none).Host(host.Target{
			Address: "node.invalid",
			KeyFile: target.KeyFile,
		}).Run(testContext(t), host.Cmd{Script: ":"})
		wantClass(t, err, host.Unreachable)
	})
	for address, words := range map[string]string{
		"commanded": "ProxyCommand",
		"circle":    "circle",
		"":          "no address",
		"a b":       "not a host name",
	} {
		t.Run("refuses "+address, func(t *testing.T) {
			err := p.Check(host.Target{Address: address})
			wantClass(t, err, host.Config)
			if !strings.Contains(err.Error(), words) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("without ssh", func(t *testing.T) {
		without := options
		without.SSH = filepath.Join(home, "nope")
		err := newPool(t, without).Check(host.Target{Address: "circle", KeyFile: target.KeyFile})
		if err != nil || len(warned) != 1 || !strings.Contains(warned[0], "ssh, which reads it for kubeone, is not ") {
			t.Errorf("got %v, warned %q", err, warned)
		}
	})
}
