//go:build e2e

package fleet

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"kubeone/test/lab/components"
)

// realLab brings up a lab of real hosts for a test. It needs docker and root.
func realLab(t *testing.T, options Options) *Lab {
	t.Helper()
	options.Ephemeral, options.NoBundle, options.Log = true, true, t.Logf
	lab, err := Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return lab
}

// loginAndRun opens an SSH connection to a host as in its manifest entry, and runs a command, all within the limit.
func loginAndRun(t *testing.T, host *Host, within time.Duration, command string) (string, error) {
	t.Helper()
	key, err := os.ReadFile(host.SSHKey)
	if err != nil {
		return "", err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return "", err
	}
	pinned, _, _, _, err := ssh.ParseAuthorizedKey([]byte(ssh.KeyAlgoED25519 + " " + host.WireKey()))
	if err != nil {
		return "", err
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(host.Address, "22"), within)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	config := &ssh.ClientConfig{
		User: host.SSHUser, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.FixedHostKey(pinned), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	}
	client, channels, requests, err := ssh.NewClientConn(conn, host.Address, config)
	if err != nil {
		return "", err
	}
	session, err := ssh.NewClient(client, channels, requests).NewSession()
	if err != nil {
		return "", err
	}
	out, err := session.CombinedOutput(command)
	return strings.TrimSpace(string(out)), err
}

func TestHostsAreBareMachines(t *testing.T) {
	lab := realLab(t, Options{Name: "fleet-bare", ControlPlanes: 1, Workers: 1, SSHUser: "ops"})
	identities := map[string]bool{}
	for _, host := range append(lab.ControlPlanes(), lab.Workers()...) {
		out, err := loginAndRun(t, host, time.Minute,
			"hostname; sudo id -u; systemctl is-system-running; which kubelet containerd runc; cat /etc/machine-id")
		lines := strings.Split(out, "\n")
		if err != nil || len(lines) != 4 || lines[0] != host.Hostname || lines[1] != "0" || lines[2] != "running" {
			t.Errorf("%s: %v\n%s", host.Name, err, out)
			continue
		}
		identities[lines[3]] = true
	}
	if len(identities) != 2 {
		t.Errorf("two hosts have %d machine IDs", len(identities))
	}
}

func TestHostsFailAsMachinesDo(t *testing.T) {
	lab := realLab(t, Options{Name: "fleet-fail", ControlPlanes: 1})
	host := lab.ControlPlanes()[0]
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	reachable := func(want bool, when string) {
		t.Helper()
		// After a pause the machine must close old connections, and may refuse the first new one.
		_, err := loginAndRun(t, host, 5*time.Second, "true")
		for until := time.Now().Add(2 * time.Minute); want && err != nil && time.Now().Before(until); {
			<-time.After(100 * time.Millisecond)
			_, err = loginAndRun(t, host, 20*time.Second, "true")
		}
		if (err == nil) != want {
			t.Errorf("reachable %s: %v (%v)", when, err == nil, err)
		}
	}
	ctx := t.Context()
	must("write", host.WriteFile(ctx, "/var/lib/mark", []byte("here")))
	// The owner's changes of files that the lab wrote.
	_, err := host.Exec(ctx, "echo '# own' | tee -a /root/.ssh/authorized_keys /etc/resolv.conf")
	must("change files", err)
	must("pause", host.Pause(ctx))
	reachable(false, "while paused")
	must("cut", host.Cut(ctx))
	must("unpause", host.Unpause(ctx))
	reachable(false, "while cut")
	must("reconnect", host.Reconnect(ctx))
	reachable(true, "after reconnect")
	must("kill", host.Kill(ctx))
	reachable(false, "after kill")
	must("start", host.Start(ctx))
	reachable(true, "after start")
	out, err := host.Exec(ctx, "cat /var/lib/mark; grep -c '# own' /root/.ssh/authorized_keys /etc/resolv.conf")
	if err != nil || out != "here/root/.ssh/authorized_keys:1\n/etc/resolv.conf:1" {
		t.Errorf("the disk after a power cut: %q, %v", out, err)
	}
	before := host.WireKey()
	must("rebuild", lab.Rebuild(ctx, host))
	reachable(true, "after rebuild")
	if _, err := host.Exec(ctx, "test -e /var/lib/mark"); err == nil || host.WireKey() == before {
		t.Error("a rebuilt host has its old disk or keys")
	}
}

func TestManifestFollowsTheHosts(t *testing.T) {
	lab := realLab(t, Options{Name: "fleet-grow", ControlPlanes: 1, SpareWorkers: 1})
	count := func(address string) int {
		text, err := os.ReadFile(lab.Path("kubeone.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "publicAddress: "+address+"\n")
	}
	spare := lab.Spares()[0]
	if count(spare.Address) != 0 {
		t.Error("the manifest names a spare host")
	}
	if err := lab.SetSpare(t.Context(), spare, false); err != nil || count(spare.Address) != 1 {
		t.Errorf("the manifest does not name the enlisted host: %v", err)
	}
	added, err := lab.AddHost(t.Context(), ControlPlane, false)
	if err != nil {
		t.Fatal(err)
	}
	if added.Hostname != "cp-2" || count(added.Address) != 1 {
		t.Errorf("added %s, named %d times", added.Name, count(added.Address))
	}
	config, err := lab.byRole(LoadBalancer)[0].Exec(t.Context(), "cat /etc/haproxy/haproxy.cfg")
	if err != nil || !strings.Contains(config, added.Address+":6443") {
		t.Errorf("the new control plane is not behind the load balancer: %v", err)
	}
	again, err := Open(lab.Name)
	if err != nil || again.Host("cp-2") == nil {
		t.Errorf("the lab opened again: %v", err)
	}
}

func TestLeftoversOfADeadProcessAreRemoved(t *testing.T) {
	lab := realLab(t, Options{Name: "fleet-dead", ControlPlanes: 1})
	// A leftover of a dead process: the same lab with an owner that has ended.
	lab.Owner = "1999999999-1"
	if err := lab.saveFiles(); err != nil {
		t.Fatal(err)
	}
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	// Tests of several packages start at the same time, and docker continues a removal that a dead process began.
	finders, findersCtx := errgroup.WithContext(t.Context())
	finders.Go(func() error {
		_, _ = runDocker(findersCtx, "rm", "--force", "--volumes", lab.ControlPlanes()[0].Container)
		return nil
	})
	for range 3 {
		finders.Go(func() error { return removeLeftovers(findersCtx, cache, t.Logf) })
	}
	if err := finders.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(lab.Name); err == nil {
		t.Error("the lab's folder is still there")
	}
	if left, err := runDocker(t.Context(), "ps", "--all", "--quiet", "--filter",
		"label="+labelName+"="+lab.Name); err != nil || left != "" {
		t.Errorf("containers are left: %q, %v", left, err)
	}
}
