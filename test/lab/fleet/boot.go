package fleet

import (
	"context"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"time"
)

// bootDeadline limits the time from a host's start to a running systemd and sshd.
const bootDeadline = 5 * time.Minute

// runArgs returns docker's arguments for a host. They allow everything except what a machine without CAP_SYS_RESOURCE
// of its own cannot grant.
func runArgs(h *Host, image, authorizedKey string, nameservers, labels []string) []string {
	args := []string{
		"run", "--detach", "--name", h.Container, "--hostname", h.Hostname, "--network", h.Network, "--ip", h.Address,
		"--cap-add=ALL", "--cap-drop=SYS_RESOURCE", "--security-opt", "seccomp=unconfined", "--security-opt",
		"apparmor=unconfined",
		"--security-opt", "systempaths=unconfined", "--device-cgroup-rule=a *:* rwm", "--cgroupns=private",
		"--stop-signal=SIGRTMIN+3", "--tmpfs", "/run:exec", "--tmpfs", "/tmp:exec", "--volume", "/var",
		"--env", "container=docker", "--env", "LAB_AUTHORIZED_KEY=" + authorizedKey, "--env",
		"LAB_NAMESERVERS=" + strings.Join(nameservers, " "),
	}
	if h.AddressIPv6 != "" {
		// docker disables IPv6 on interfaces that are not its own.
		args = append(args, "--ip6", h.AddressIPv6, "--sysctl", "net.ipv6.conf.all.disable_ipv6=0")
	}
	for _, device := range []string{"/dev/fuse", "/dev/kmsg"} {
		if _, err := os.Stat(device); err == nil {
			args = append(args, "--device="+device)
		}
	}
	if _, err := os.Stat("/lib/modules"); err == nil {
		args = append(args, "--volume", "/lib/modules:/lib/modules:ro")
	}
	return append(append(args, labels...), image)
}

// reachableNameservers returns this machine's resolvers that a host can reach, or else the lab's gateway, which may be
// none.
func reachableNameservers(resolvConf, gateway string) []string {
	var servers []string
	for _, line := range strings.Split(resolvConf, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if ip := net.ParseIP(fields[1]); ip != nil && ip.To4() != nil && !ip.IsLoopback() {
			servers = append(servers, fields[1])
		}
	}
	if len(servers) == 0 {
		return []string{gateway}
	}
	return servers[:min(len(servers), 3)]
}

// waitBooted waits until systemd has started and sshd accepts connections.
func (h *Host) waitBooted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootDeadline)
	defer cancel()
	var state string
	for {
		// The command fails until systemd runs, and in the state "degraded". The output distinguishes them.
		state, _ = runDocker(ctx, "exec", h.Container, "systemctl", "is-system-running", "--wait")
		if state == "running" || state == "degraded" {
			break
		}
		if err := waitMoment(ctx); err != nil {
			return fmt.Errorf("boot %s: systemd is %q: %w", h.Name, state, err)
		}
	}
	if state == "degraded" {
		failed, _ := h.Exec(ctx, "systemctl --failed --no-legend --plain")
		return fmt.Errorf("boot %s: units failed: %s", h.Name, failed)
	}
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(h.Address, "22"))
		if err == nil {
			return conn.Close()
		}
		if waitErr := waitMoment(ctx); waitErr != nil {
			return fmt.Errorf("boot %s: sshd does not answer: %w", h.Name, err)
		}
	}
}

// waitMoment waits between two checks of a condition. It fails when ctx ends.
func waitMoment(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}

// readHostKeys reads the host's SSH keys at its console, which excludes a man in the middle.
func (h *Host) readHostKeys(ctx context.Context) error {
	text, err := h.Exec(ctx, "cat /etc/ssh/ssh_host_*_key.pub")
	if err != nil {
		return err
	}
	h.HostKeys = nil
	for _, line := range strings.Split(text, "\n") {
		if fields := strings.Fields(line); len(fields) >= 2 {
			h.HostKeys = append(h.HostKeys, fields[0]+" "+fields[1])
		}
	}
	// "ssh-ed25519" sorts after "ecdsa-…".
	sort.Sort(sort.Reverse(sort.StringSlice(h.HostKeys)))
	if len(h.HostKeys) == 0 {
		return fmt.Errorf("%s has no SSH host keys", h.Name)
	}
	return nil
}
