//go:build e2e && long

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestClusterObjects makes a cluster from a file with a Cluster and Machines, which the cluster stores. The same file
// recovers it from outside. A manifest takes over from the objects, and the other way round.
func TestClusterObjects(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "objects", ControlPlanes: 3, Workers: 2, SpareWorkers: 1, SSHUser: "ops"})
	s.bare = s.snapshotAll()
	s.runParts(
		part{"a manifest becomes a cluster, for comparison", installPlain},
		part{"the cluster ends", resetCluster},
		part{"objects become a cluster, which stores them", installObjects},
		part{"applying the objects again writes nothing", objectsAreUnchanged},
		part{"an edited object is put back", editedObjectIsPutBack},
		part{"a Cluster is not deleted by mistake", clusterIsNotDeleted},
		part{"a manifest is refused, takes over, and is replaced by objects again", formChanges},
		part{"the file gets another worker and an argument of the API server", objectsChange},
		part{"two of three control-plane hosts are destroyed, and the same file recovers the cluster", objectsRecover},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
	)
}

// exportObjects writes the edited manifest of the lab as a file of objects, which further commands use.
func (s *scenario) exportObjects(edits ...operator.Edit) {
	s.Helper()
	s.Manifest = filepath.Join(s.Dir, "kubeone.yaml")
	s.must(s.WriteManifest(edits...))
	text := s.runCommand(0, []string{"export", s.Manifest}).Stdout
	s.Manifest = filepath.Join(s.Dir, "cluster.yaml")
	s.must(os.WriteFile(s.Manifest, []byte(text), 0o600))
}

func installObjects(s *scenario) {
	s.exportObjects()
	installPlain(s)
	s.checkEqual("the Cluster", "objects 1.36.3", s.runKubectl("get", "clusters.cluster.k8s.io", "-n", "kube-system", "-o",
		"jsonpath={.items[*].metadata.name} {.items[*].spec.kubernetesVersion}"))
	s.checkEqual("the Machines", "cp-1 cp-2 cp-3 worker-1 worker-2", s.runKubectl("get", "machines.cluster.k8s.io", "-n",
		"kube-system", "-o", "jsonpath={.items[*].metadata.name}"))
}

// storedObjects returns the versions of the stored objects.
func (s *scenario) storedObjects() string {
	s.Helper()
	return s.runKubectl("get", "clusters.cluster.k8s.io,machines.cluster.k8s.io,configmaps", "-n", "kube-system", "-o",
		`jsonpath={range .items[?(@.metadata.name!="kubeone")]}{.kind} {.metadata.name} `+
			`{.metadata.resourceVersion}{"\n"}{end}`)
}

func objectsAreUnchanged(s *scenario) {
	before := s.storedObjects()
	s.nothingToDo()
	s.runCommand(0, []string{"apply", "-y"}, "No changes")
	s.checkEqual("stored objects", before, s.storedObjects())
}

func editedObjectIsPutBack(s *scenario) {
	s.runKubectl("-n", "kube-system", "patch", "clusters.cluster.k8s.io", "objects", "--type=merge", "-p",
		`{"spec":{"kubernetesVersion":"1.36.1"}}`)
	s.runCommand(2, []string{"plan", "--diff"}, "apply addon cluster-objects", "kubernetesVersion: 1.36.1")
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	s.checkEqual("version in the Cluster", "1.36.3", s.runKubectl("-n", "kube-system", "get", "clusters.cluster.k8s.io",
		"objects", "-o", "jsonpath={.spec.kubernetesVersion}"))
}

func clusterIsNotDeleted(s *scenario) {
	out, err := s.Kube(s.Context(), "-n", "kube-system", "delete", "clusters.cluster.k8s.io", "objects")
	if err == nil || !strings.Contains(err.Error()+out, "allow-deletion") {
		s.Errorf("kubectl delete: %v\n%s", err, out)
	}
}

func formChanges(s *scenario) {
	file := s.Manifest
	manifest := filepath.Join(s.Dir, "kubeone.yaml")
	before := s.readStarted(s.Members())
	s.runCommand(15, []string{"apply", "-y", "-m", manifest}, "kubeone adopt --as manifest")
	s.runCommand(15, []string{"adopt", "--as", "manifest", "-y"}, `the file has the form "objects"`)
	s.runCommand(0, []string{"adopt", "--as", "manifest", "-y", "-m", manifest}, "has the form manifest")
	s.checkEqual("Clusters and Machines", "", s.runKubectl("get", "clusters.cluster.k8s.io,machines.cluster.k8s.io", "-A",
		"-o", "jsonpath={.items[*].metadata.name}"))
	s.runCommand(0, []string{"apply", "-y", "-m", manifest}, "No changes")
	s.runCommand(15, []string{"apply", "-y"}, "kubeone adopt --as objects")
	s.runCommand(0, []string{"adopt", "--as", "objects", "-y", file}, "has the form objects")
	s.runCommand(0, []string{"adopt", "--as", "objects", "-y", file}, "No changes")
	s.nothingToDo()
	s.checkEqual("what runs since when", before, s.readStarted(s.Members()))
}

func withoutProfiling() operator.Edit {
	return operator.Replace("features:\n",
		"controlPlaneComponents: {apiServer: {flags: {profiling: \"false\"}}}\nfeatures:\n")
}

func objectsChange(s *scenario) {
	spare := s.Lab.Spares()[0]
	s.must(s.Lab.SetSpare(s.Context(), spare, false))
	s.exportObjects(withoutProfiling())
	s.runCommand(2, []string{"plan"}, spare.Hostname, "apply addon cluster-objects")
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	s.awaitHealthy()
	s.nothingToDo()
	s.checkEqual("argument in the Cluster", "false", s.runKubectl("-n", "kube-system", "get", "clusters.cluster.k8s.io",
		"objects", "-o", `jsonpath={.spec.apiServer.extraArgs[?(@.name=="profiling")].value}`))
	s.runKubectl("-n", "kube-system", "get", "machines.cluster.k8s.io", spare.Hostname)
}

func objectsRecover(s *scenario) {
	s.writeMarkerObject("before")
	for _, name := range []string{"cp-2", "cp-3"} {
		s.must(s.Lab.Host(name).Kill(s.Context()))
	}
	s.runCommand(11, []string{"apply", "-y"}, "etcd has lost quorum", "--confirm-destroyed cp-2 --confirm-destroyed cp-3")
	for _, name := range []string{"cp-2", "cp-3"} {
		s.rebuildHost(s.Lab.Host(name))
	}
	s.exportObjects(withoutProfiling()) // the hosts have new SSH keys, which are stored after the recovery
	s.runCommand(10, []string{"recover", "-y", "--from", "surviving-member"}, "nodes Ready",
		"the cluster is restored, but the steps listed above remain", "apply addon cluster-objects")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.awaitHealthy()
	s.runKubectl("get", "configmap", "before")
	s.nothingToDo()
}
