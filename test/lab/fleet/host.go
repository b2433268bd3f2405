package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Role is the purpose of a host.
type Role string

// The roles of a lab's hosts.
const (
	ControlPlane Role = "control-plane"
	Worker       Role = "worker"
	LoadBalancer Role = "load-balancer"
)

// Host is one machine of a lab. Its methods act through docker, like an operator at the power switch and console.
// kubeone has access through SSH only.
type Host struct {
	// Name is unique among labs ("lab-cp-1"), Hostname is the host's own name ("cp-1").
	Name     string `json:"name"`
	Hostname string `json:"hostname"`
	Role     Role   `json:"role"`
	// Spare hosts run, but are not in the manifest.
	Spare     bool   `json:"spare,omitempty"`
	Container string `json:"container"`
	Network   string `json:"network"`
	Address   string `json:"address"`
	// AddressIPv6 is set in a dual-stack lab.
	AddressIPv6 string `json:"addressIPv6,omitempty"`
	SSHUser     string `json:"sshUser"`
	SSHKey      string `json:"sshPrivateKeyFile"`
	// HostKeys are the SSH host keys, "ssh-ed25519 AAAA…" first.
	HostKeys []string `json:"sshHostKeys"`
}

// Exec runs a shell command on the host as root, without SSH, and returns its standard output. The error contains
// standard error.
func (h *Host) Exec(ctx context.Context, command string) (string, error) {
	out, err := runDocker(ctx, "exec", h.Container, "sh", "-c", command)
	for again := 0; err != nil && again < 10 && notBegun(err) && waitMoment(ctx) == nil; again++ {
		out, err = runDocker(ctx, "exec", h.Container, "sh", "-c", command)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", h.Name, err)
	}
	return out, err
}

// notBegun reports whether docker could not start a command, as during the start of the container.
func notBegun(err error) bool {
	return strings.Contains(err.Error(), "OCI runtime exec failed") && strings.Contains(err.Error(), "setns")
}

// WriteFile writes a file with mode 0644 on the host, and creates its folder.
func (h *Host) WriteFile(ctx context.Context, path string, content []byte) error {
	cmd := exec.CommandContext(ctx, "docker", "exec", "-i", h.Container, "sh", "-c", `mkdir -p "${1%/*}" && cat >"$1"`,
		"sh", path)
	cmd.Stdin = bytes.NewReader(content)
	if _, err := runOutput(cmd); err != nil {
		return fmt.Errorf("%s: write %s: %w", h.Name, path, err)
	}
	return nil
}

// CopyTo copies a local file to the host.
func (h *Host) CopyTo(ctx context.Context, local, remote string) error {
	return h.runDocker(ctx, "copy "+local, "cp", local, h.Container+":"+remote)
}

// Pause makes the machine hang: it accepts TCP connections but nothing runs.
func (h *Host) Pause(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := h.runDocker(ctx, "pause", "pause", h.Container)
		// With cgroups v1 the kernel may fail to freeze a busy machine at the first attempt.
		if err == nil || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
		if waitMoment(ctx) != nil {
			return err
		}
	}
}

// Unpause ends a Pause.
func (h *Host) Unpause(ctx context.Context) error {
	return h.runDocker(ctx, "unpause", "unpause", h.Container)
}

// Cut pulls the network cable. The machine keeps running, and its interface stays without a carrier.
func (h *Host) Cut(ctx context.Context) error { return h.setCable(ctx, "down") }

// Reconnect ends a Cut.
func (h *Host) Reconnect(ctx context.Context) error { return h.setCable(ctx, "up") }

// Kill turns the power off.
func (h *Host) Kill(ctx context.Context) error { return h.runDocker(ctx, "kill", "kill", h.Container) }

// Start turns the power on again after Kill and waits until the host has booted.
func (h *Host) Start(ctx context.Context) error {
	if err := h.runDocker(ctx, "start", "start", h.Container); err != nil {
		return err
	}
	return h.waitBooted(ctx)
}

func (h *Host) runDocker(ctx context.Context, verb string, args ...string) error {
	if _, err := runDocker(ctx, args...); err != nil {
		return fmt.Errorf("%s %s: %w", verb, h.Name, err)
	}
	return nil
}

// SSHArgs returns the arguments of ssh for the host, which check its key against the lab's known_hosts.
func (h *Host) SSHArgs(knownHosts string) []string {
	return []string{
		"-i", h.SSHKey, "-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile=" + knownHosts, "-o",
		"StrictHostKeyChecking=yes",
		"-o", "ConnectTimeout=5", "-l", h.SSHUser, h.Address,
	}
}

// ordinalOf returns the number at the end of a host's name: 2 for "lab-cp-2".
func (h *Host) ordinalOf() int {
	n, _ := strconv.Atoi(h.Hostname[strings.LastIndexByte(h.Hostname, '-')+1:])
	return n
}
