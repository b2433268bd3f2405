//go:build e2e && long

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestFirewalls has hosts with active firewalls that allow only SSH: Debian's ufw on one worker, firewalld on the
// others.
func TestFirewalls(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "firewalls", ControlPlanes: 1, Workers: 2, SSHUser: "ops"})
	s.runParts(
		part{"firewalls that let nothing but SSH in", firewallsOn},
		part{"bare hosts become a cluster, and their firewalls stay on", firewallsOpened},
		part{"pods, Services and kubelets are reached through the firewalls", firewallsPass},
		part{"removed rules are reported and restored", firewallsRepaired},
		part{"the cluster ends, and the firewalls have the rules that they had", firewallsAsBefore},
		part{"firewalls are switched off, and on again", firewallsOff},
	)
}

const (
	ufwActive       = "ufw status | grep -q '^Status: active'"
	firewalldActive = "systemctl is-active --quiet firewalld"
)

// hostsByFirewall returns the hosts by the command of their firewall.
func (s *scenario) hostsByFirewall() map[string][]*fleet.Host {
	return map[string][]*fleet.Host{
		ufwActive:       {s.Lab.Host("worker-1")},
		firewalldActive: {s.Lab.Host("cp-1"), s.Lab.Host("worker-2")},
	}
}

func firewallsOn(s *scenario) {
	s.installPackages("ufw", s.Lab.Host("worker-1"))
	s.breakHost(s.Lab.Host("worker-1"), `ufw allow 22/tcp && ufw allow 10250/tcp comment "monitoring" &&
		ufw --force enable`)
	s.installPackages("firewalld", s.hostsByFirewall()[firewalldActive]...)
	for _, host := range s.hostsByFirewall()[firewalldActive] {
		s.breakHost(host, "systemctl enable --now firewalld && firewall-cmd --state")
	}
	s.firewallsActive(true)
	for _, host := range s.Machines() {
		s.breakHost(host, "systemd-run --unit firewall-probe --quiet python3 -m http.server 10255")
		s.eventually("the probe of "+host.Hostname+" to listen", time.Minute, func(ctx context.Context) error {
			_, err := host.Exec(ctx, "curl -fs -m 2 -o /dev/null http://127.0.0.1:10255/")
			return err
		})
		if _, err := s.Lab.Host("lb").Exec(s.Context(), "curl -fs -m 2 -o /dev/null http://"+host.Address+
			":10255/"); err == nil {
			s.Errorf("the firewall of %s filters nothing", host.Hostname)
		}
		s.breakHost(host, "systemctl stop firewall-probe")
	}
	s.bare = s.snapshotAll()
}

// installPackages installs a package and its dependencies on the hosts. They come from this machine's Debian, because
// the hosts have no package source.
func (s *scenario) installPackages(name string, hosts ...*fleet.Host) {
	s.Helper()
	s.copyPackages(name, hosts...)
	_, err := operator.OnEach(s.Context(), hosts, "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "+
		"--no-install-recommends /root/debs/*.deb && rm -r /root/debs")
	s.must(err)
}

// copyPackages copies a package and its dependencies to /root/debs on the hosts.
func (s *scenario) copyPackages(name string, hosts ...*fleet.Host) {
	s.Helper()
	dir := filepath.Join(s.Dir, name)
	s.must(os.MkdirAll(filepath.Join(dir, "partial"), 0o755))
	status, err := hosts[0].Exec(s.Context(), "cat /var/lib/dpkg/status")
	s.must(err)
	s.must(os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o600))
	out, err := exec.CommandContext(s.Context(), "apt-get", "install", "-qq", "-y", "--download-only",
		"--no-install-recommends", "-o", "Dir::State::status="+filepath.Join(dir, "status"),
		"-o", "Dir::Cache::archives="+dir, "-o", "APT::Sandbox::User=root", name).CombinedOutput()
	if err != nil {
		s.Fatalf("download %s: %v\n%s", name, err, out)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	s.must(err)
	for _, host := range hosts {
		s.breakHost(host, "mkdir -p /root/debs")
		for _, file := range packages {
			s.must(host.CopyTo(s.Context(), file, "/root/debs/"))
		}
	}
}

// firewallsActive checks that all firewalls filter, or that none does.
func (s *scenario) firewallsActive(want bool) {
	s.Helper()
	for active, hosts := range s.hostsByFirewall() {
		for _, host := range hosts {
			if _, err := host.Exec(s.Context(), active); (err == nil) != want {
				s.Errorf("%s: active is to be %t: %v", host.Hostname, want, err)
			}
		}
	}
}

func firewallsOpened(s *scenario) {
	s.runCommand(2, []string{"plan"}, "open ports in ufw", "open ports in firewalld")
	installPlain(s)
	s.firewallsActive(true)
	s.nothingToDo()
}

func firewallsPass(s *scenario) {
	s.must(s.ImportAgnhost(s.Context(), s.Machines()))
	_, err := s.Feed(s.Context(), web, "apply", "-f", "-")
	s.must(err)
	_, err = s.Kube(s.Context(), "rollout", "status", "daemonset/web", "--timeout=180s")
	s.must(err)
	pods := s.webPods()
	s.podsReachEachOther(pods)
	s.servicesAnswer(pods)
	s.logsAndExec(pods)
}

func firewallsRepaired(s *scenario) {
	worker := s.Lab.Host("worker-1")
	before := s.readStarted(s.otherMembers(worker))
	s.breakHost(worker, "ufw delete allow 8472/udp")
	saved := filepath.Join(s.TempDir(), "saved.json")
	s.runCommand(2, []string{"plan", "--out", saved}, "reconfigure firewall", "open ports in ufw")
	s.runCommand(0, []string{"apply", "--plan", saved}, "Done. The cluster matches the manifest.")
	s.breakHost(worker, "ufw status | grep -q '^8472/udp.*kubeone'")
	s.checkEqual("what runs on the other hosts since when", before, s.readStarted(s.otherMembers(worker)))
	s.nothingToDo()
}

func firewallsAsBefore(s *scenario) {
	s.runCommand(0, []string{"reset", "-y", "--purge"}, "Done. The hosts are bare.")
	s.firewallsActive(true)
	s.checkUnchanged(s.bare, s.snapshotAll())
}

func firewallsOff(s *scenario) {
	s.must(s.WriteManifest(editFields(func(all map[string]any) { all["firewall"] = "disable" })))
	s.runCommand(2, []string{"plan"}, "switch ufw off until a reset", "switch firewalld off until a reset")
	installPlain(s)
	s.firewallsActive(false)
	s.nothingToDo()
	s.must(s.WriteManifest())
	s.runCommand(2, []string{"plan"}, "open ports in ufw, and switch it on",
		"open ports in firewalld, and switch it on")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.firewallsActive(true)
	s.awaitHealthy()
	s.nothingToDo()
	s.runCommand(0, []string{"reset", "-y", "--purge"}, "Done. The hosts are bare.")
	s.firewallsActive(true)
	s.checkUnchanged(s.bare, s.snapshotAll())
}
