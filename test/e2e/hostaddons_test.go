//go:build e2e && long

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestTimersOfHosts switches on the addons that are timers on hosts, lets them work, changes them by hand, and switches
// them off.
func TestTimersOfHosts(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "timers", ControlPlanes: 3, Workers: 1})
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"without a package source, the run names it", upgradesWithoutPackages},
		part{"timers are installed", timersInstalled},
		part{"members are defragmented while the API answers", membersDefragmented},
		part{"a member that is not healthy prevents it", unhealthyMember},
		part{"packages are upgraded", packagesUpgraded},
		part{"manual changes are found and undone", timersEdited},
		part{"timers that are no longer declared are removed", timersRemoved},
	)
}

var (
	defragEntry = map[string]any{
		"name": "etcd-defrag", "params": map[string]any{"schedule": "Sun 23:15", "threshold": "20"},
	}
	upgradesEntry = map[string]any{"name": "unattended-upgrades"}
)

// declareTimers writes the manifest with these addons.
func (s *scenario) declareTimers(list ...any) {
	s.Helper()
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		all["addons"] = map[string]any{"enable": true, "addons": list}
	})))
}

// upgradesWithoutPackages lets hosts install a package that they cannot get.
func upgradesWithoutPackages(s *scenario) {
	_, err := operator.OnEach(s.Context(), s.Machines(), "rm -rf /etc/apt/sources.list.d/* && : >/etc/apt/sources.list")
	s.must(err)
	s.declareTimers(defragEntry, upgradesEntry)
	s.runCommand(16, []string{"apply", "-y"}, "cannot install unattended-upgrades: give this host a package source")
	s.awaitHealthy()
}

// serveItself makes the package and its dependencies, which are in /root/debs, the only package source of a host.
const serveItself = `set -eu
cd /root/debs
for deb in *.deb; do
	dpkg-deb -f "$deb"
	printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "./$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
done >Packages
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/root/debs ./' >/etc/apt/sources.list`

func timersInstalled(s *scenario) {
	s.copyPackages("unattended-upgrades", s.Machines()...)
	_, err := operator.OnEach(s.Context(), s.Machines(), serveItself)
	s.must(err)
	s.runCommand(2, []string{"plan", "--diff"}, "timer kubeone-etcd-defrag runs at Sun *-*-* 23:15:00 UTC",
		"timer kubeone-etcd-defrag runs at Mon *-*-* 00:15:00 UTC", "timer kubeone-unattended-upgrades runs at",
		"its package is installed", "OnCalendar=")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.nothingToDo()
	out, err := operator.OnEach(s.Context(), s.Machines(), "systemctl list-timers --no-legend 'kubeone-*'")
	s.must(err)
	for host, text := range out {
		member := strings.Contains(host, "cp")
		if strings.Contains(text, "kubeone-etcd-defrag.timer") != member ||
			!strings.Contains(text, "kubeone-unattended-upgrades.timer") {
			s.Errorf("timers of %s:\n%s", host, text)
		}
	}
}

// compactEtcd makes etcd forget what was deleted.
const compactEtcd = `set -eu
ctr="/opt/kubeone/bin/ctr -n k8s.io"
id=$($ctr containers ls -q 'labels."io.kubernetes.container.name"==etcd' | while read -r id; do
	$ctr tasks ls | grep -q "^$id .*RUNNING" && echo "$id"
done | head -n 1)
pki=/etc/kubernetes/pki/etcd
etcdctl() {
	$ctr tasks exec --exec-id "e2e-$$" "$id" etcdctl --endpoints https://127.0.0.1:2379 \
		--cacert $pki/ca.crt --cert $pki/server.crt --key $pki/server.key "$@"
}
revision=$(etcdctl endpoint status -w json | sed 's/.*"revision":\([0-9]*\).*/\1/')
etcdctl compaction --physical "$revision" >/dev/null`

// fillEtcd has etcd allocate 18 MiB, and leaves them free.
func (s *scenario) fillEtcd() {
	s.Helper()
	var objects strings.Builder
	for n := range 20 {
		fmt.Fprintf(&objects, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: big-%d, labels: {big: \"yes\"}}\n"+
			"data: {a: %s}\n", n, strings.Repeat("x", 900<<10))
	}
	_, err := s.Feed(s.Context(), objects.String(), "create", "-f", "-")
	s.must(err)
	s.runKubectl("delete", "configmap", "-l", "big=yes")
	s.breakHost(s.Lab.ControlPlanes()[0], compactEtcd)
}

// databaseSize returns the size of a host's etcd database.
func (s *scenario) databaseSize(host *fleet.Host) int {
	s.Helper()
	text, err := host.Exec(s.Context(), "curl -fs http://127.0.0.1:2381/metrics | "+
		"sed -n 's/^etcd_mvcc_db_total_size_in_bytes //p'")
	s.must(err)
	size, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	s.must(err)
	return int(size)
}

// membersDefragmented starts the service on each host, the leader's among them.
func membersDefragmented(s *scenario) {
	s.fillEtcd()
	for _, host := range s.Lab.ControlPlanes() {
		before := s.databaseSize(host)
		s.breakHost(host, "systemctl start kubeone-etcd-defrag.service")
		s.runKubectl("get", "--raw", "/readyz")
		after := s.databaseSize(host)
		if after > before/2 {
			s.Errorf("%s: the database has %d bytes, and had %d", host.Hostname, after, before)
		}
		said, err := host.Exec(s.Context(), "journalctl -u kubeone-etcd-defrag -o cat --no-pager")
		s.must(err)
		if want := fmt.Sprintf("%d bytes before, %d bytes now", before, after); !strings.Contains(said, want) {
			s.Errorf("%s: want %q in\n%s", host.Hostname, want, said)
		}
		s.breakHost(host, "systemctl start kubeone-etcd-defrag.service && journalctl -u kubeone-etcd-defrag -n 5 -o cat "+
			"--no-pager | grep 'nothing is done, because'")
	}
	s.runCommand(0, []string{"etcd", "members"}, "All members are healthy and hold the same keys.")
}

// unhealthyMember pauses a host while another one has a lot to defragment.
func unhealthyMember(s *scenario) {
	first, last := s.Lab.ControlPlanes()[0], s.Lab.ControlPlanes()[2]
	s.fillEtcd()
	s.must(last.Pause(s.Context()))
	before := s.databaseSize(first)
	_, err := first.Exec(s.Context(), "systemctl start kubeone-etcd-defrag.service")
	after := s.databaseSize(first)
	s.must(last.Unpause(s.Context()))
	if err == nil || after < before {
		s.Errorf("it was defragmented: %d bytes before, %d now, %v", before, after, err)
	}
	s.breakHost(first, "journalctl -u kubeone-etcd-defrag -n 9 -o cat --no-pager | "+
		"grep -e 'members of etcd are healthy, so nothing is done' -e 'etcd does not list its members'")
	s.awaitHealthy()
}

func packagesUpgraded(s *scenario) {
	out, err := operator.OnEach(s.Context(), s.Machines(), `set -e
apt-config dump | grep -x 'Unattended-Upgrade::Package-Blacklist:: "^kubelet$";'
apt-config dump | grep -x 'Unattended-Upgrade::Automatic-Reboot "false";'
! apt-config dump | grep 'APT::Periodic::Unattended-Upgrade "1"'
systemctl start kubeone-unattended-upgrades.service
systemctl show -p Result kubeone-unattended-upgrades.service
cat /var/log/unattended-upgrades/unattended-upgrades.log`)
	s.must(err)
	for host, text := range out {
		if !strings.Contains(text, "Result=success") || !strings.Contains(text, "No packages found") {
			s.Errorf("%s:\n%s", host, text)
		}
	}
}

// timersEdited stops a timer, edits another one, and deletes the rules for packages.
func timersEdited(s *scenario) {
	cps, worker := s.Lab.ControlPlanes(), s.Lab.Workers()[0]
	const timer = "/etc/systemd/system/kubeone-etcd-defrag.timer"
	s.breakHost(cps[0], "systemctl disable --now kubeone-etcd-defrag.timer")
	s.breakHost(cps[1], "sed -i 's/^OnCalendar=.*/OnCalendar=hourly/' "+timer+
		" && systemctl daemon-reload && systemctl restart kubeone-etcd-defrag.timer")
	s.breakHost(worker, "rm /etc/apt/apt.conf.d/99kubeone-unattended-upgrades")
	s.runCommand(2, []string{"plan"}, "timer kubeone-etcd-defrag is started again", timer,
		"/etc/apt/apt.conf.d/99kubeone-unattended-upgrades")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.nothingToDo()
	s.breakHost(cps[0], "systemctl is-enabled kubeone-etcd-defrag.timer && systemctl is-active kubeone-etcd-defrag.timer")
	s.breakHost(cps[1], "systemctl show -p TimersCalendar kubeone-etcd-defrag.timer | grep 'Sun.* 23:45:00'")
	s.breakHost(worker, "apt-config dump | grep kubelet")
}

func timersRemoved(s *scenario) {
	s.declareTimers(map[string]any{"name": "etcd-defrag", "delete": true})
	s.runCommand(2, []string{"plan"}, "timer kubeone-etcd-defrag is removed",
		"timer kubeone-unattended-upgrades is removed")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.nothingToDo()
	_, err := operator.OnEach(s.Context(), s.Machines(), `set -e
! systemctl list-timers --all --no-legend | grep -e etcd-defrag -e kubeone-unattended
! ls -d /etc/kubeone/addons /etc/systemd/system/*etcd-defrag* /etc/systemd/system/*/*etcd-defrag* \
	/etc/systemd/system/kubeone-unattended* /etc/systemd/system/timers.target.wants/*unattended* \
	/etc/apt/apt.conf.d/99kubeone-unattended-upgrades 2>/dev/null | grep .
! grep -e etcd-defrag -e unattended /etc/kubeone/digests /etc/kubeone/files`)
	s.must(err)
	s.must(os.RemoveAll(s.Dir + "/unattended-upgrades"))
}
