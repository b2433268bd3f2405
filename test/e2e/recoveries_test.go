//go:build e2e && long

package e2e

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/internal/script"
	"kubeone/test/lab/fleet"
)

// TestRecoveries loses the quorum of a cluster in different ways. A recovery could choose older data, could fail to
// start expired components, or could be blocked by an unrelated worker.
func TestRecoveries(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "recoveries", ControlPlanes: 3, Workers: 1})
	s.bare = map[string][]string{}
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"a control-plane host that is cut off from the others is no reason to recover", peersCut},
		part{"hosts that the manifest does not have serve, and nothing begins anew beside them", servedElsewhere},
		part{"the newest data comes back, although its etcd does not start", newestComesBack},
		part{"all certificates have expired", certificatesExpired},
		part{"the disk of a worker is read-only, and the quorum is lost once more", readOnlyWorker},
		part{"the data of all members is gone, and a snapshot brings the cluster back", snapshotRestored},
	)
}

// peersCut cuts the connection between cp-1 and the two others. The operator reaches all three.
func peersCut(s *scenario) {
	host := s.Lab.Host("cp-1")
	var rules strings.Builder
	rules.WriteString("nft add table inet cut && nft 'add chain inet cut in { type filter hook input priority 0; }'")
	for _, peer := range s.otherMembers(host) {
		fmt.Fprintf(&rules, " && nft add rule inet cut in ip saddr %s drop", peer.Address)
	}
	before := s.readStarted(s.otherMembers(host))
	s.breakHost(host, rules.String())
	s.eventually("cp-1 finds no quorum", time.Minute, func(ctx context.Context) error {
		_, err := host.Exec(ctx, "! curl -sf -m 3 http://127.0.0.1:2381/readyz")
		return err
	})
	for range 3 { // the first host to answer varies
		s.runCommand(15, []string{"recover", "--from", "surviving-member", "--host", "cp-1", "-y"}, "etcd has quorum")
	}
	s.breakHost(host, "nft delete table inet cut")
	// Its kubelet may have stopped the API server, which had no etcd for long, and restarts it after a while.
	s.eventually("the API server of cp-1", 3*time.Minute, readyAPI(host))
	s.awaitHealthy()
	s.checkEqual("what runs on the others since when", before, s.readStarted(s.otherMembers(host)))
}

// servedElsewhere: the manifest has lost cp-2 and cp-3, which have the quorum, and cp-1 has lost its data.
func servedElsewhere(s *scenario) {
	host := s.Lab.Host("cp-1")
	others := s.otherMembers(host)
	file := filepath.Join(s.TempDir(), "elsewhere.db")
	s.runCommand(0, []string{"etcd", "snapshot", file}, file)
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		controlPlane := all["controlPlane"].(map[string]any)
		controlPlane["hosts"] = controlPlane["hosts"].([]any)[:1]
	})))
	before := s.readStarted(others)
	s.breakHost(host, "rm -rf /var/lib/etcd/member; kill -9 $(pidof etcd)")
	s.eventually("cp-1 does not serve", time.Minute, func(ctx context.Context) error {
		_, err := host.Exec(ctx, "[ ! -e /var/lib/etcd/member ] && ! curl -skf -m 3 https://127.0.0.1:6443/readyz")
		return err
	})
	for _, args := range [][]string{
		{"etcd", "restore", file, "-y"}, {"recover", "--from", file, "-y", "--host", "cp-1"},
	} {
		s.runCommand(15, args, "a second cluster next to a working one")
	}
	s.checkEqual("what runs on the others since when", before, s.readStarted(others))
	s.must(s.WriteManifest())
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.awaitHealthy()
	s.membersOnDisks()
}

// membersOnDisks checks that the members on a member's disk match etcd's.
func (s *scenario) membersOnDisks() {
	s.Helper()
	for _, host := range s.Lab.ControlPlanes() {
		text, err := host.Exec(s.Context(), script.Progress(true))
		s.must(err)
		for _, other := range s.Lab.ControlPlanes() {
			if !strings.Contains(text, `"name":"`+other.Hostname+`"`) || !strings.Contains(text, "\nsearched") {
				s.Errorf("the disk of %s does not tell of %s:\n%s", host.Hostname, other.Hostname, text)
			}
		}
		if !strings.Contains(text, "\nremoved ") {
			s.Errorf("the disk of %s does not tell of the member that cp-1 was:\n%s", host.Hostname, text)
		}
	}
}

// newestComesBack: cp-2 hangs and misses writes, cp-3 has them but its etcd cannot start, and cp-1 is destroyed.
func newestComesBack(s *scenario) {
	behind, newest := s.Lab.Host("cp-2"), s.Lab.Host("cp-3")
	s.writeObjects("earlier", 20)
	s.must(behind.Pause(s.Context()))
	s.writeObjects("newest", 1000)
	s.breakHost(newest, "sed -i 's|^    - --data-dir=|    - --no-such-flag=1\\n&|' /etc/kubernetes/manifests/etcd.yaml")
	s.eventually("the etcd of cp-3 does not start", time.Minute, func(ctx context.Context) error {
		_, err := newest.Exec(ctx, "! curl -sf -m 2 http://127.0.0.1:2381/metrics >/dev/null")
		return err
	})
	s.must(s.Lab.Rebuild(s.Context(), s.Lab.Host("cp-1")))
	s.must(behind.Unpause(s.Context()))
	// It resumes in its former quorum. A recovery from another host is refused until it notices.
	s.eventually("cp-2 knows that it has no quorum", time.Minute, func(ctx context.Context) error {
		_, err := behind.Exec(ctx, `says() { curl -sk -o /dev/null -w '%{http_code}' "$1"; }
[ "$(says http://127.0.0.1:2381/readyz)" = 503 ] || exit 1
case "$(says https://127.0.0.1:6443/readyz)" in
500 | 000) ;; # it says so, or has ended for want of etcd
*) exit 1 ;;
esac`)
		return err
	})
	s.must(s.WriteManifest())
	s.recoverCluster("--from", "surviving-member")
	s.checkObjectCount("earlier", 20)
	s.checkObjectCount("newest", 1000)
}

// certificatesExpired: the certificates of kubeadm and of the kubelet on cp-1 have expired, and no other control-plane
// host is left.
func certificatesExpired(s *scenario) {
	host := s.Lab.Host("cp-1")
	s.writeObjects("expired", 50)
	const validity = 70 * time.Second
	s.breakHost(host, fmt.Sprintf(`cd /var/lib/kubelet/pki
		cat >/tmp/short.yaml <<-END
		apiVersion: kubeadm.k8s.io/v1beta4
		kind: ClusterConfiguration
		kubernetesVersion: v%s
		certificateValidityPeriod: %s
		END
		kubeadm=/opt/kubeone/bin/kubeadm
		$kubeadm certs renew all --config /tmp/short.yaml
		$kubeadm kubeconfig user --config /tmp/short.yaml --client-name system:node:cp-1 --org system:nodes \
			--validity-period %s >/tmp/short.conf
		for part in certificate key; do
			sed -n "s/^ *client-$part-data: //p" /tmp/short.conf | base64 -d
		done >short.pem
		chmod 0600 short.pem
		ln -sf short.pem kubelet-client-current.pem
		rm /tmp/short.yaml /tmp/short.conf`, s.Lab.KubernetesVersion, validity, validity))
	for _, name := range []string{"cp-2", "cp-3"} {
		s.must(s.Lab.Rebuild(s.Context(), s.Lab.Host(name)))
	}
	s.must(s.WriteManifest())
	s.eventually("everything has expired", 3*time.Minute, func(ctx context.Context) error {
		for _, file := range []string{"/etc/kubernetes/pki/apiserver.crt", "/var/lib/kubelet/pki/short.pem"} {
			text, err := host.Exec(ctx, "cat "+file)
			if err != nil {
				return err
			}
			block, _ := pem.Decode([]byte(text))
			if block == nil {
				return fmt.Errorf("%s is no certificate", file)
			}
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return err
			}
			if left := time.Until(certificate.NotAfter); left > 0 {
				return fmt.Errorf("%s is valid for %s", file, left)
			}
		}
		return nil
	})
	s.recoverCluster("--from", "surviving-member")
	s.checkObjectCount("expired", 50)
}

// snapshotRestored: no host has etcd's data, but each has the cluster's keys. The writes after the snapshot are lost,
// and the cluster starts on the chosen host.
func snapshotRestored(s *scenario) {
	s.writeObjects("saved", 30)
	dir := s.TempDir()
	file, journal := filepath.Join(dir, "by-hand.db"), filepath.Join(dir, "run.jsonl")
	s.runCommand(0, []string{"etcd", "snapshot", file}, file)
	s.writeObjects("lost", 10)
	for _, host := range s.Lab.ControlPlanes() {
		s.breakHost(host, "rm -rf /var/lib/etcd/member; kill -9 $(pidof etcd)")
	}
	s.eventually("no host serves", time.Minute, func(ctx context.Context) error {
		for _, host := range s.Lab.ControlPlanes() {
			if _, err := host.Exec(ctx, "! pidof etcd && [ ! -e /var/lib/etcd/member ]"); err != nil {
				return err
			}
		}
		return nil
	})
	s.runCommand(0, []string{"etcd", "restore", file, "-y", "--host", "cp-2", "--bundle", s.Bundle, "--parallel", "2",
		"--log-file", journal}, "nodes Ready", "Done. The cluster matches the manifest.")
	s.awaitHealthy()
	s.checkObjectCount("saved", 30)
	s.checkObjectCount("lost", 0)
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}

func readOnlyWorker(s *scenario) {
	worker := s.Lab.Host("worker-1")
	s.writeObjects("readonly", 30)
	s.breakHost(worker, "mount --bind /var/lib/kubeone /var/lib/kubeone && mount -o remount,bind,ro /var/lib/kubeone")
	for _, name := range []string{"cp-2", "cp-3"} {
		s.must(s.Lab.Rebuild(s.Context(), s.Lab.Host(name)))
	}
	s.must(s.WriteManifest())
	s.runCommand(10, []string{"recover", "--from", "surviving-member", "-y"}, "the cluster is restored", "read-only")
	s.checkObjectCount("readonly", 30)
	s.breakHost(worker, "umount /var/lib/kubeone")
	s.awaitHealthy()
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}
