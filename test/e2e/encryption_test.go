//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kubeone/internal/apply"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// secretsKept is the number of Secrets with known values in TestEncryption.
const secretsKept = 500

// TestEncryption encrypts Secrets at rest, rotates the keys, and ends encryption, with a failure in each phase. A host
// loses its keys, one host is replaced, and all hosts are restored from a backup in the middle of a rotation. After
// each step it reads every Secret through each API server, and inspects etcd's own bytes.
func TestEncryption(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "encryption", ControlPlanes: 3, Workers: 1})
	s.bare = map[string][]string{}
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"Secrets are there, and are stored as they are", secretsPlain},
		part{"they are encrypted, killed once in each phase", encryptionEnabled},
		part{"they get a second key, killed once in each phase", keyRotated},
		part{"a host loses its keys", keysLost},
		part{"they get a third key, and a host is destroyed in the middle", replacedWhileRotated},
		part{"all hosts are destroyed in the middle of a rotation, and come back from a backup", destroyedWhileRotated},
		part{"they are not encrypted any more, killed once in each phase", encryptionDisabled},
	)
}

// enableEncryption enables the encryption of Secrets.
func enableEncryption(all map[string]any) {
	setFeatures(all, map[string]any{"encryptionProviders": map[string]any{"enable": true}})
}

// secretsPlain creates the Secrets.
func secretsPlain(s *scenario) {
	var objects strings.Builder
	for n := range secretsKept {
		fmt.Fprintf(&objects, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: known-%d\n  namespace: default\n"+
			"stringData:\n  value: \"the value of %d\"\n---\n", n, n)
	}
	_, err := s.Feed(s.Context(), objects.String(), "create", "-f", "-")
	s.must(err)
	s.storedBy("identity")
}

// storedBy checks that every API server can read every Secret, and that etcd's bytes show that key, and no other, for
// all of them.
func (s *scenario) storedBy(key string) {
	s.Helper()
	for _, h := range s.Lab.ControlPlanes() {
		said, err := h.Exec(s.Context(), "/opt/kubeone/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf "+
			"--server https://"+h.Address+":6443 --tls-server-name kubernetes get secrets -n default -o "+
			`go-template='{{range .items}}{{.metadata.name}} {{.data.value | base64decode}}{{"\n"}}{{end}}'`)
		s.must(err)
		found := 0
		for line := range strings.Lines(said) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if n, ours := strings.CutPrefix(name, "known-"); ours {
				if found++; value != "the value of "+n {
					s.Errorf("%s: Secret %s is %q", h.Hostname, name, value)
				}
			}
		}
		s.checkEqual("Secrets that are read through "+h.Hostname, secretsKept, found)
	}
	h := s.Lab.ControlPlanes()[0]
	const ask = `id=$(/opt/kubeone/bin/ctr -n k8s.io tasks ls | grep RUNNING | cut -d' ' -f1 | while read -r id; do
/opt/kubeone/bin/ctr -n k8s.io containers ls -q labels.\"io.kubernetes.container.name\"==etcd | grep -x "$id"
done | head -n 1)
pki=/etc/kubernetes/pki/etcd
get() { /opt/kubeone/bin/ctr -n k8s.io tasks exec --exec-id "e2e-$$-$1" "$id" etcdctl \
--endpoints https://127.0.0.1:2379 --cacert $pki/ca.crt --cert $pki/server.crt --key $pki/server.key \
get /registry/secrets/ --prefix "$2"; }
printf 'all %s\n' "$(get keys --keys-only | grep -c /registry/secrets/)"
get values --print-value-only | grep -a -o 'k8s:enc:[a-z]*:v1:[a-z0-9-]*:' | sort | uniq -c |
while read -r n by; do echo "$by $n"; done
get plain --print-value-only | grep -a -c 'the value of [0-9]' | while read -r n; do echo "readable $n"; done`
	said, err := h.Exec(s.Context(), ask)
	s.must(err)
	count := map[string]string{}
	for line := range strings.Lines(said) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		count[name] = n
	}
	all := count["all"]
	delete(count, "all")
	readable := count["readable"]
	delete(count, "readable")
	want := map[string]string{}
	if key != "identity" {
		want["k8s:enc:secretbox:v1:"+key+":"] = all
	}
	s.checkEqual("what etcd has Secrets stored by", want, count)
	if (readable == "0") != (key != "identity") {
		s.Errorf("%s values can be read in etcd's bytes, and Secrets are to be stored by %s", readable, key)
	}
	s.noKeysTold()
}

// noKeysTold checks that keys appear in their own file only.
func (s *scenario) noKeysTold() {
	s.Helper()
	for _, h := range s.Lab.ControlPlanes() {
		s.breakHost(h, `for key in $(sed -n 's/^ *secret: //p' /etc/kubernetes/encryption/*.yaml 2>/dev/null); do
! grep -rqsF -e "$key" /var/lib/kubeone /etc/kubeone /run/kubeone /var/log/pods /etc/kubernetes/manifests || exit 1
! journalctl --no-pager | grep -qF -e "$key" || exit 1
done
[ -z "$(find /etc/kubernetes/encryption -type f ! -perm 0600 2>/dev/null)" ]`)
	}
}

// killedInEachPhase applies, and kills the run once in the first step of each phase. Then it lets a run finish.
func (s *scenario) killedInEachPhase(args ...string) {
	s.Helper()
	for _, phase := range []string{
		"encrypt-learn/", "encrypt-use/", "rewrite-secrets", "check-secrets/", "encrypt-forget/",
	} {
		r, at, reached, err := s.ApplyKilled(s.Context(), func(e apply.Event) bool {
			return e.Type == apply.StepStarted && strings.HasPrefix(e.Step, phase)
		})
		s.must(err)
		if !reached {
			s.Fatalf("no step %s\n%s", phase, r)
		}
		s.Logf("killed at %s", at.Step)
	}
	s.runCommand(0, append([]string{"apply", "-y"}, args...), "Done. The cluster matches the manifest.")
	s.nothingToDo()
	s.awaitHealthy()
}

func encryptionEnabled(s *scenario) {
	s.must(s.WriteManifest(editFields(enableEncryption)))
	s.runCommand(2, []string{"plan"}, "encryption of Secrets: learn new key kubeone-1", "rewrite every Secret")
	s.killedInEachPhase()
	s.storedBy("kubeone-1")
	s.runCommand(0, []string{"status"}, "encrypted by kubeone-1")
}

// keyRotated begins a rotation, which later runs continue without the flag.
func keyRotated(s *scenario) {
	s.rotationKilledAfter("encrypt-learn/cp-1")
	s.eventually("status tells of the rotation", time.Minute, func(ctx context.Context) error {
		if r := s.Run(ctx, "status"); !strings.Contains(r.Text(), "next phase: learn") {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	s.killedInEachPhase()
	s.storedBy("kubeone-2")
}

// rotationKilledAfter begins a rotation, and kills kubeone when the step has finished.
func (s *scenario) rotationKilledAfter(id string) {
	s.Helper()
	run, err := s.Start(s.Context(), []string{"apply", "-y", "--rotate-encryption-key"}...)
	s.must(err)
	if _, reached := run.Await(operator.Step(apply.StepDone, id)); !reached {
		s.Fatalf("no step %s\n%s", id, run.Wait())
	}
	s.must(run.Kill())
	run.Wait()
}

// keysLost deletes a host's keys. Its API server could not start again.
func keysLost(s *scenario) {
	s.breakHost(s.Lab.Host("cp-2"), "rm -rf /etc/kubernetes/encryption/*")
	s.runCommand(2, []string{"plan"}, "restore the keys")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.storedBy("kubeone-2")
	s.breakHost(s.Lab.Host("cp-3"), "rm -rf /etc/kubernetes/encryption && systemctl stop kubelet && "+
		"kill $(pgrep -x kube-apiserver)")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.storedBy("kubeone-2")
}

// replacedWhileRotated destroys a host when one host writes with the new key.
func replacedWhileRotated(s *scenario) {
	s.rotationKilledAfter("encrypt-use/cp-1")
	s.must(s.Lab.Rebuild(s.Context(), s.Lab.Host("cp-3")))
	s.must(s.WriteManifest(editFields(enableEncryption)))
	s.eventually("the third key is the only one", 10*time.Minute, s.applyUntilEmpty)
	s.storedBy("kubeone-3")
}

// applyUntilEmpty applies until nothing is left to do.
func (s *scenario) applyUntilEmpty(ctx context.Context) error {
	if r := s.Run(ctx, "apply", "-y"); r.Status != 0 {
		return fmt.Errorf("%s", r)
	}
	return nil
}

// destroyedWhileRotated takes a backup when one host knows a fourth key and another writes with it.
func destroyedWhileRotated(s *scenario) {
	s.rotationKilledAfter("encrypt-use/cp-2")
	backup, key := s.writeBackup()
	for _, host := range s.Lab.ControlPlanes() {
		s.must(s.Lab.Rebuild(s.Context(), host))
	}
	s.must(s.WriteManifest(editFields(enableEncryption)))
	if r := s.Run(s.Context(), []string{"recover", "-y", "--from", backup, "--identity", key}...); !strings.Contains(
		r.Text(), "the cluster is restored") { // the backup contains an unfinished rotation
		s.Fatalf("%s", r)
	}
	s.eventually("the fourth key is the only one", 10*time.Minute, s.applyUntilEmpty)
	s.storedBy("kubeone-4")
	s.awaitHealthy()
}

func encryptionDisabled(s *scenario) {
	s.must(s.WriteManifest())
	s.killedInEachPhase()
	s.storedBy("identity")
	for _, h := range s.Lab.ControlPlanes() {
		s.breakHost(h, "[ ! -e /etc/kubernetes/encryption ] && "+
			"! grep -rq encryption-provider /etc/kubernetes/manifests /etc/kubeone/patches")
	}
}
