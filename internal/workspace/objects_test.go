package workspace

import (
	"strings"
	"testing"

	"kubeone/internal/testutil/sshtest"
)

// clusterObjects is a Cluster with one Machine. MORE is part of its settings.
const clusterObjects = `apiVersion: v1
kind: List
items:
- apiVersion: cluster.k8s.io/v1alpha1
  kind: Cluster
  metadata: {name: demo, namespace: kube-system}
  spec:
    kubernetesVersion: 1.36.3
    providerSpec:
      value: {apiVersion: kubeone.k8c.io/v1beta2, kind: KubeOneCluster, cloudProvider: {none: {}}, MORE}
- apiVersion: cluster.k8s.io/v1alpha1
  kind: Machine
  metadata: {name: cp-1, namespace: kube-system}
  spec:
    roles: [Master]
    providerSpec:
      value: {cloudProvider: static, cloudProviderSpec: {publicAddress: 192.0.2.1, sshPrivateKeyFile: KEY}}
`

// The engine of stored objects knows nothing of what is in files of an operator's machine.
func TestAWorkspaceOfStoredObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ more, wrong string }{
		"plain":        {"clusterNetwork: {cni: {flannel: {}}}", ""},
		"a folder":     {"addons: {enable: true, path: addons}", "addons.path is addons, a folder on an operator's machine"},
		"a hook there": {"hooks: [{name: a, before: apply, command: [a]}]", "a hook runs on the operator's"},
		"a file":       {"certificateAuthority: {file: /etc/hostname}", "a file on another machine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, manifestText)
			o.Manifest = "the Cluster demo"
			o.Objects = []byte(strings.NewReplacer("MORE", c.more, "KEY", sshtest.WriteKey(t, "").Path).
				Replace(clusterObjects))
			w, err := Open(t.Context(), o)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%v, want %q", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if !w.Engine.Want().Objects || w.loaded.Addons != nil {
				t.Errorf("objects %v, addons %v", w.Engine.Want().Objects, w.loaded.Addons)
			}
		})
	}
}
