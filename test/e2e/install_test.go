//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubeone/test/e2e/operator"
)

// decorateWorker gives the first worker labels, an annotation and a taint.
func decorateWorker(manifest string) string {
	return strings.Replace(manifest, "      hostname: worker-1\n", `      hostname: worker-1
      labels:
        example.com/disk: fast
      annotations:
        example.com/owner: storage team
      taints:
        - key: example.com/only
          value: batch
          effect: PreferNoSchedule
`, 1)
}

func installCluster(s *scenario) {
	s.must(s.WriteManifest(decorateWorker))
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.must(s.FetchKubeconfig(s.Context()))
	s.must(s.AllReady(s.Context(), hostnamesOf(s.Members())...))
	s.checkDecorations()
	s.servingCertificates()
	s.checkRecord()
	s.checkJournal()
	s.kubeconfigIsPrivate()
	s.runCommand(0, []string{"status"})
}

// checkDecorations checks labels, annotations and taints from the manifest on the worker's Node.
func (s *scenario) checkDecorations() {
	nodes, err := s.Nodes(s.Context())
	s.must(err)
	worker := nodes["worker-1"]
	s.checkEqual("label", "fast", worker.Labels["example.com/disk"])
	s.checkEqual("annotation", "storage team", worker.Annotations["example.com/owner"])
	ours := slices.DeleteFunc(worker.Spec.Taints, func(t corev1.Taint) bool {
		return strings.HasPrefix(t.Key, "node.kubernetes.io/")
	})
	s.checkEqual("taints",
		[]corev1.Taint{{Key: "example.com/only", Value: "batch", Effect: corev1.TaintEffectPreferNoSchedule}}, ours)
}

// servingCertificates checks that each kubelet has a serving certificate from the cluster for its own names.
func (s *scenario) servingCertificates() {
	certs, err := operator.OnEach(s.Context(), s.Members(),
		"openssl x509 -noout -issuer -ext subjectAltName -in /var/lib/kubelet/pki/kubelet-server-current.pem")
	s.must(err)
	for _, host := range s.Members() {
		for _, want := range []string{"CN = kubernetes", "DNS:" + host.Hostname, "IP Address:" + host.Address} {
			if !strings.Contains(certs[host.Hostname], want) {
				s.Errorf("serving certificate of %s: want %q in\n%s", host.Hostname, want, certs[host.Hostname])
			}
		}
	}
	pending, err := s.Kube(s.Context(), "get", "csr", "--no-headers")
	s.must(err)
	if strings.Contains(pending, "Pending") {
		s.Errorf("certificate requests are left:\n%s", pending)
	}
}

// checkRecord checks that the cluster stores its manifest without secrets.
func (s *scenario) checkRecord() {
	var record corev1.ConfigMap
	s.must(s.Object(s.Context(), &record, "--namespace=kube-system", "configmap", "kubeone"))
	if manifest := record.Data["manifest"]; !strings.Contains(manifest, "name: "+s.Lab.Name) ||
		!strings.Contains(manifest, "KubeOneCluster") {
		s.Errorf("the cluster record has no manifest:\n%s", manifest)
	}
	for key, text := range record.Data {
		if strings.Contains(text, "PRIVATE KEY") || strings.Contains(strings.ToLower(text), "password") {
			s.Errorf("the cluster record holds something secret under %q", key)
		}
	}
	tokens, err := s.Kube(s.Context(), "get", "secrets", "--namespace=kube-system",
		"--field-selector=type=bootstrap.kubernetes.io/token", "-o", "name")
	s.must(err)
	s.checkEqual("join tokens that are left", "", tokens)
}

// checkJournal checks that the journal has the run line by line, is readable by the operator only, and contains no
// secrets.
func (s *scenario) checkJournal() {
	files, err := filepath.Glob(filepath.Join(s.Dir, "state", s.Lab.Name, "journal", "*.jsonl"))
	s.must(err)
	if len(files) == 0 {
		s.Fatal("the run has no journal")
	}
	newest := files[len(files)-1]
	s.checkEqual("mode of the journal", os.FileMode(0o600), modeOf(s, newest))
	text, err := os.ReadFile(newest)
	s.must(err)
	last := ""
	for _, line := range operator.Lines(string(text)) {
		var event struct {
			Format int
			Type   string
		}
		s.must(json.Unmarshal([]byte(line), &event))
		s.checkEqual("format of an event", 1, event.Format)
		last = event.Type
	}
	s.checkEqual("last event of the journal", "run-finished", last)
	if strings.Contains(string(text), "PRIVATE KEY") {
		s.Error("the journal holds a private key")
	}
}

func modeOf(s *scenario, path string) os.FileMode {
	info, err := os.Stat(path)
	s.must(err)
	return info.Mode().Perm()
}

// kubeconfigIsPrivate fetches the kubeconfig like an operator, and uses it.
func (s *scenario) kubeconfigIsPrivate() {
	path := filepath.Join(s.Dir, "fetched")
	s.runCommand(0, []string{"kubeconfig", "-f", path})
	s.checkEqual("mode of the kubeconfig", os.FileMode(0o600), modeOf(s, path))
	written, err := os.ReadFile(path)
	s.must(err)
	// Each control-plane host has its own administrator's certificate.
	cluster := func(kubeconfig string) string {
		cluster, _, _ := strings.Cut(kubeconfig, "client-certificate-data:")
		return cluster
	}
	s.checkEqual("the cluster that is printed without a file", cluster(string(written)),
		cluster(s.runCommand(0, []string{"kubeconfig"}).Stdout))
	if _, err := s.Kube(s.Context(), "--kubeconfig", path, "auth", "can-i", "*", "*", "--all-namespaces"); err != nil {
		s.Errorf("the kubeconfig is not the administrator's: %v", err)
	}
	s.recordIsTheManifest(path)
}

// recordIsTheManifest compares what the cluster records with the operator's manifest.
func (s *scenario) recordIsTheManifest(kubeconfig string) {
	name, err := s.Kube(s.Context(), "--kubeconfig", kubeconfig, "config", "current-context")
	s.must(err)
	name = strings.TrimSpace(name)
	s.runCommand(0, []string{"diff", "--all", s.Manifest, "context:" + name, "--kubeconfig", kubeconfig},
		"No differences.")
	s.runCommand(0, []string{"export", "--as", "objects", "--context", name, "--kubeconfig", kubeconfig},
		"kind: Cluster\n", "cloudProvider: static\n")
}

// awaitHealthy waits until all members are Ready and every control plane answers.
func (s *scenario) awaitHealthy() {
	s.Helper()
	for _, host := range s.Lab.ControlPlanes() {
		s.eventually("the API server of "+host.Hostname, time.Minute, readyAPI(host))
	}
	s.eventually("all nodes Ready", time.Minute, allReady(s))
}
