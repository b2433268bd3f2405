package cli

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/testutil/sshtest"
)

// startDir is the directory of this package; scripts run in their own directories.
var startDir, _ = os.Getwd()

// startHosts serves bare hosts on all addresses 127.x.y.z. Each host of 127.0.2.0/24 has a different flaw. User "guest"
// may not use sudo. The hosts answer the probe and refuse every other command, because nothing may change.
func startHosts(t *testing.T, authorized ssh.PublicKey) *sshtest.Server {
	t.Helper()
	bare, err := os.ReadFile("../probe/testdata/empty.txt")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile("../probe/testdata/foreign.txt")
	if err != nil {
		t.Fatal(err)
	}
	return sshtest.Start(t, sshtest.Options{
		AllLoopback: true, AuthorizedKeys: []ssh.PublicKey{authorized},
		Handler: func(s *sshtest.Session) int {
			if s.User == "guest" {
				_, _ = io.WriteString(s.Stderr, "sudo: a password is required\nkubeone: no sudo\n")
				return 213
			}
			address, _, _ := net.SplitHostPort(s.LocalAddr.String())
			if !isProbe(s) {
				_, _ = fmt.Fprintln(s.Stderr, "this test plays only probes")
				return 99
			}
			facts := string(bare)
			if address == foreignHost {
				facts = strings.ReplaceAll(string(foreign), "aarch64", "x86_64")
			}
			_, _ = io.WriteString(s.Stdout, present(facts, address))
			return 0
		},
	})
}

// isProbe reads the script, whose length is in the command, and reports whether it is the probe.
func isProbe(s *sshtest.Session) bool {
	_, size, _ := strings.Cut(s.Command, "dd bs=")
	size, _, _ = strings.Cut(size, " ")
	length, err := strconv.Atoi(size)
	if err != nil {
		return false
	}
	script := make([]byte, length)
	if _, err := io.ReadFull(s.Stdin, script); err != nil {
		return false
	}
	return bytes.Contains(script, []byte("kubeone-probe 1"))
}

// foreignHost is a member of another cluster.
const foreignHost = "127.0.2.8"

// flaws maps the address of a host to its flaw: facts and their replacements.
func flaws() map[string][2]string {
	return map[string][2]string{
		"127.0.2.1": {"uname\t6.1.0-28-amd64", "uname\t4.18.0-553"},
		"127.0.2.2": {"ID=debian", "ID=plan9"},
		"127.0.2.3": {"MemTotal:       24684096 kB", "MemTotal:         684096 kB"},
		"127.0.2.4": {" 64242460 ", "   242460 "},
		"127.0.2.5": {"missing\tlosetup",
			"listen\tLISTEN 0 4096 0.0.0.0:6443 0.0.0.0:* users:((\"haproxy\",pid=7,fd=5))\nmissing\tlosetup"},
		"127.0.2.6": {"absent\t/var/lib/etcd/member", "exists\t/var/lib/etcd/member"},
		"127.0.2.7": {"absent\t/etc/kubernetes/pki/ca.key", "exists\t/etc/kubernetes/pki/ca.key"},
		"127.0.2.9": {"hostname\tcp-1", "hostname\tcp_9"},
		"127.0.2.11": {"absent\t/etc/kubeone/marker",
			"exists\t/etc/kubeone/marker\nfile\t/etc/kubeone/marker:cluster=prod\n" +
				"file\t/etc/kubeone/marker:role=control-plane\nfile\t/etc/kubeone/marker:complete=yes"},
		"127.0.2.20": {"x86_64", "aarch64"},
	}
}

// lateHost is the address of the host whose clock is one minute slow.
const lateHost = "127.0.2.10"

// present updates the times and the address in a recorded answer.
func present(facts, address string) string {
	if flaw, ok := flaws()[address]; ok {
		facts = strings.ReplaceAll(facts, flaw[0], flaw[1])
	}
	now := float64(time.Now().UnixNano()) / 1e9
	if address == lateHost {
		now -= 60
	}
	id := strings.ReplaceAll(address, ".", "-")
	for _, r := range [][2]string{
		{"clock\t1800000000.250000000", fmt.Sprintf("clock\t%f", now)},
		{"clock\t1800000000.350000000", fmt.Sprintf("clock\t%f", now)},
		{"hostname\tcp-1", "hostname\tnode-" + id},
		{"machine-id\ta7bdb53aa5cf4851a708d39020e5b177", fmt.Sprintf("machine-id\t%032x", net.ParseIP(address).To4())},
		{"10.0.0.11/24 brd 10.0.0.255", address + "/8 brd 127.255.255.255"},
	} {
		facts = strings.ReplaceAll(facts, r[0], r[1])
	}
	return facts
}
