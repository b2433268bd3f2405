//go:build e2e

package e2e

import (
	"strconv"
	"strings"
	"testing"
)

// fault is a defect of a host. Make causes it and Undo removes it; both are shell commands.
type fault struct {
	name       string
	host       string
	make, undo string
	status     int
	says       []string
}

func hostFaults() []fault {
	return []fault{
		{"no sudo", "worker-1", "mv /etc/sudoers.d/ops /root/ops", "mv /root/ops /etc/sudoers.d/ops", 13,
			[]string{"sudo"}},
		{"port of the API taken", "cp-1", listenOn(6443), stopListening(6443), 10, []string{"port 6443 is taken"}},
		{"port of etcd taken", "cp-2", listenOn(2379), stopListening(2379), 10, []string{"port 2379 is taken"}},
		{"port of the kubelet taken", "worker-1", listenOn(10250), stopListening(10250), 10,
			[]string{"port 10250 is taken"}},
		{"clock wrong", "cp-3", standIn("date", `exec /usr/bin/date -d "+2 minutes" "$@"`), "rm /usr/local/sbin/date",
			10, []string{"clock is ", " ahead"}}, // the offset includes the time of the host's answer
		{"too little disk", "worker-1", "mount -t tmpfs -o size=100m lab /var/lib", "umount /var/lib", 10,
			[]string{"MiB of disk space is free", "MiB is required"}},
		{"too little memory", "cp-1", coverFile("/proc/meminfo", "MemTotal: 512000 kB"), uncoverFile("/proc/meminfo"),
			10,
			[]string{"500 MiB of memory"}},
		{"unsupported system", "cp-2", coverFile("/etc/os-release", "ID=plan9"), uncoverFile("/etc/os-release"), 10,
			[]string{`operating system "plan9" is not supported`}},
		{
			"a command missing that no package manager brings", "worker-1",
			coverFile("/etc/os-release", "ID=flatcar") + " && mv /usr/sbin/iptables /root/iptables",
			"mv /root/iptables /usr/sbin/iptables; " + uncoverFile("/etc/os-release"), 10,
			[]string{`no package manager for "flatcar" to install them: iptables`},
		},
		{"kernel too old", "cp-2", standIn("uname", "echo 3.10.0-1160 x86_64"), "rm /usr/local/sbin/uname", 10,
			[]string{`kernel "3.10.0-1160"`}},
		{"etcd data of unknown origin", "cp-1", "mkdir -p /var/lib/etcd/member", "rm -r /var/lib/etcd", 15,
			[]string{"etcd data of unknown origin"}},
		{"keys of unknown origin", "cp-3", "mkdir -p /etc/kubernetes/pki && echo x >/etc/kubernetes/pki/ca.key",
			"rm -r /etc/kubernetes", 15, []string{"PKI of unknown origin"}},
	}
}

func listenOn(port int) string {
	return strings.ReplaceAll("systemd-run --quiet --unit=taken-PORT socat TCP-LISTEN:PORT,fork,reuseaddr /dev/null "+
		"&& until ss -ltnH | grep -q :PORT; do :; done", "PORT", strconv.Itoa(port))
}

func stopListening(port int) string {
	return strings.ReplaceAll("systemctl stop taken-PORT; systemctl reset-failed taken-PORT 2>/dev/null || true",
		"PORT", strconv.Itoa(port))
}

// standIn puts a program in front of the real one of that name.
func standIn(name, script string) string {
	path := "/usr/local/sbin/" + name
	return "printf '#!/bin/sh\\n%s\\n' '" + script + "' >" + path + " && chmod 755 " + path
}

// coverFile mounts a text over a file, which stays unchanged underneath.
func coverFile(path, text string) string {
	return "echo '" + text + "' >/run/cover && mount --bind /run/cover " + path
}

func uncoverFile(path string) string { return "umount " + path + " && rm /run/cover" }

// badHosts causes each fault, and removes it after kubeone has reported it.
func badHosts(s *scenario) {
	for _, fault := range hostFaults() {
		s.T.Run(fault.name, func(t *testing.T) {
			f := &scenario{T: t, Operator: s.Operator, bare: s.bare}
			f.checkFault(fault)
		})
	}
	s.checkUnchanged(s.bare, s.snapshotAll())
}

// checkFault checks that kubeone reports the fault and changes nothing on the host. A single check after all faults
// covers the other hosts.
func (s *scenario) checkFault(f fault) {
	host := s.Lab.Host(f.host)
	_, err := host.Exec(s.Context(), f.make)
	s.must(err)
	defer func() {
		_, err := host.Exec(s.Context(), f.undo)
		s.must(err)
	}()
	before := s.snapshotOf(host)
	s.runCommand(f.status, []string{"apply", "-y"}, append(f.says, f.host)...)
	s.checkUnchanged(before, s.snapshotOf(host))
}
