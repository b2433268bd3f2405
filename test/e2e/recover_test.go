//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"kubeone/test/lab/fleet"
)

// writeObjects writes count objects whose names have the prefix.
func (s *scenario) writeObjects(prefix string, count int) {
	s.Helper()
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-%d, labels: {counted: %s}}}\n",
			prefix, i, prefix)
	}
	s.eventually("objects are written", 3*time.Minute, func(ctx context.Context) error {
		_, err := s.Feed(ctx, text.String(), "apply", "-f", "-", "--request-timeout=20s")
		return err
	})
}

// checkObjectCount checks that there are count objects with the prefix.
func (s *scenario) checkObjectCount(prefix string, count int) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d objects %s", count, prefix), time.Minute, func(ctx context.Context) error {
		text, err := s.Kube(ctx, "get", "configmap", "-l", "counted="+prefix, "-o", "name", "--request-timeout=5s")
		if have := len(strings.Fields(text)); err == nil && have != count {
			err = fmt.Errorf("%d are there", have)
		}
		return err
	})
}

func recoveryRefused(s *scenario) {
	s.writeObjects("first", 100)
	before := s.readStarted(s.Members())
	s.runCommand(15, []string{"recover", "--from", "surviving-member", "-y"}, "etcd has quorum")
	short := filepath.Join(s.Dir, "short.db")
	s.must(os.WriteFile(short, []byte("not a snapshot"), 0o600))
	s.runCommand(15, []string{"recover", "--from", short, "-y"}, "cannot be used")
	s.checkEqual("what runs since when", before, s.readStarted(s.Members()))
}

func twoOfThreeDestroyed(s *scenario) {
	for _, name := range []string{"cp-2", "cp-3"} {
		s.must(s.Lab.Host(name).Kill(s.Context()))
	}
	s.runCommand(11, []string{"apply", "-y"}, "etcd has lost quorum",
		"kubeone recover -m MANIFEST --from surviving-member --confirm-destroyed cp-2 --confirm-destroyed cp-3")
	s.runCommand(15, []string{"recover", "--from", "surviving-member", "--confirm-destroyed", "cp-2", "-y"},
		"--confirm-destroyed cp-3")
	for _, name := range []string{"cp-2", "cp-3"} {
		s.rebuildHost(s.Lab.Host(name))
	}
	s.must(s.WriteManifest(decorateWorker))
	s.recoverCluster("--from", "surviving-member")
	s.checkObjectCount("first", 100)
}

// recoverCluster runs a recovery, and checks that the cluster is complete afterwards.
func (s *scenario) recoverCluster(args ...string) {
	s.Helper()
	r := s.runCommand(0, append([]string{"recover", "-y"}, args...), "nodes Ready",
		"Done. The cluster matches the manifest.")
	for line := range strings.Lines(r.Stdout) {
		if strings.Contains(line, "nodes Ready") {
			s.Log(strings.TrimSpace(line))
		}
	}
	s.awaitHealthy()
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}

func allDestroyed(s *scenario) {
	s.writeObjects("every", 200)
	_, err := s.Kube(s.Context(), "create", "clusterrolebinding", "reader", "--clusterrole=view",
		"--serviceaccount=default:default")
	s.must(err)
	token, err := s.Kube(s.Context(), "create", "token", "default", "--duration=2h")
	s.must(err)
	backup, key := s.writeBackup()
	for _, host := range s.Lab.ControlPlanes() {
		s.must(s.Lab.Rebuild(s.Context(), host))
	}
	s.must(s.WriteManifest())
	s.runCommand(11, []string{"apply", "-y"}, "kubeone recover -m MANIFEST --from BACKUP --identity KEYFILE")
	s.runCommand(15, []string{"recover", "--from", "surviving-member", "-y"},
		"no control-plane host that answered holds etcd data")
	s.checkAlteredBackups(backup, key)
	s.recoverCluster("--from", backup, "--identity", key)
	s.checkObjectCount("every", 200)
	if _, err := s.Kube(s.Context(), "get", "configmap", "--token", strings.TrimSpace(token),
		"--request-timeout=5s"); err != nil {
		s.Errorf("a service account's token of before: %v", err)
	}
	s.checkPodDNS()
}

// checkPodDNS checks that pods on untouched workers are reachable and work.
func (s *scenario) checkPodDNS() {
	s.Helper()
	s.eventually("cluster DNS", 2*time.Minute, func(ctx context.Context) error {
		_, err := s.Kube(ctx, "rollout", "status", "deployment/coredns", "-n", "kube-system", "--timeout=5s")
		return err
	})
}

// writeBackup writes a backup off the hosts, and returns the paths of the backup and its key.
func (s *scenario) writeBackup() (path, key string) {
	s.Helper()
	identity, err := age.GenerateX25519Identity()
	s.must(err)
	path, key = filepath.Join(s.Dir, "backup.tar.age"), filepath.Join(s.Dir, "key.txt")
	s.must(os.WriteFile(key, []byte(identity.String()+"\n"), 0o600))
	s.runCommand(0, []string{"backup", "-f", path, "--recipient", identity.Recipient().String()})
	return path, key
}

// checkAlteredBackups checks that a truncated backup and one with a changed byte are refused.
func (s *scenario) checkAlteredBackups(path, key string) {
	s.Helper()
	content, err := os.ReadFile(path)
	s.must(err)
	bad := path + ".bad"
	for _, what := range [][]byte{
		content[:len(content)/2], append(append([]byte{}, content[:len(content)-1]...), content[len(content)-1]^1),
	} {
		s.must(os.WriteFile(bad, what, 0o600))
		s.runCommand(15, []string{"recover", "--from", bad, "--identity", key, "-y"}, "cannot be used")
	}
}

// cutOffComeBack: hosts that were confirmed as destroyed, but were only cut off, have a quorum of their own when they
// return. They must never serve their data.
func cutOffComeBack(s *scenario) {
	hosts := []*fleet.Host{s.Lab.Host("cp-2"), s.Lab.Host("cp-3")}
	s.writeObjects("second", 50)
	for _, host := range hosts {
		s.must(host.Cut(s.Context()))
	}
	bundle := s.Bundle
	s.Bundle = "" // the surviving host has everything it needs
	s.runCommand(10, []string{"recover", "--from", "surviving-member", "--confirm-destroyed", "cp-2,cp-3", "-y"},
		"the cluster is restored")
	s.Bundle = bundle
	s.writeObjects("third", 50)
	stale := s.watchReads("third", 50)
	var together sync.WaitGroup
	for _, host := range hosts {
		together.Go(func() {
			if err := host.Reconnect(s.Context()); err != nil {
				s.Error(err)
			}
		})
	}
	together.Wait()
	s.eventually("the hosts that came back have stepped down", time.Minute,
		s.planSays("data from before the cluster was recovered"))
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	stale()
	s.awaitHealthy()
	for _, prefix := range []string{"second", "third"} {
		s.checkObjectCount(prefix, 50)
	}
}

// watchReads reads through the load balancer and from every control-plane host, twenty times a second, until end is
// called. No answer may lack an object that was written after the recovery.
func (s *scenario) watchReads(prefix string, count int) (end func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	var readers sync.WaitGroup
	var answers, stale atomic.Int64
	for _, server := range append([]string{""}, serverURLs(s.Lab.ControlPlanes())...) {
		client, err := s.Client(server)
		s.must(err)
		read := func(ctx context.Context) {
			list, err := client.CoreV1().ConfigMaps("default").List(ctx,
				metav1.ListOptions{LabelSelector: "counted=" + prefix})
			if err != nil {
				return
			}
			answers.Add(1)
			if len(list.Items) != count {
				stale.Add(1)
			}
		}
		readers.Go(func() { wait.UntilWithContext(ctx, read, 50*time.Millisecond) })
	}
	return func() {
		s.Helper()
		cancel()
		readers.Wait()
		s.Logf("%d answers, %d of them stale", answers.Load(), stale.Load())
		if answers.Load() == 0 || stale.Load() > 0 {
			s.Errorf("%d of %d answers were of the cluster's life before", stale.Load(), answers.Load())
		}
	}
}

func serverURLs(hosts []*fleet.Host) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, "https://"+h.Address+":6443")
	}
	return out
}
