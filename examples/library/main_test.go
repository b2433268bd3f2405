package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubeone/internal/release"
	"kubeone/internal/testutil/sshtest"
)

// Each cluster goes its own way: what is wrong with one is said of it, and of no other.
func TestClustersAreReconciledEachByItself(t *testing.T) { // it sets the environment
	t.Setenv("KUBEONE_STATE", t.TempDir())
	key, dir := sshtest.WriteKey(t, ""), t.TempDir()
	manifest := func(name string) string {
		text := fmt.Sprintf("apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\nname: %s\nversions:\n"+
			"  kubernetes: 1.36.3\n"+
			"cloudProvider:\n  none: {}\nclusterNetwork:\n  cni:\n    flannel: {}\ncontrolPlane:\n  hosts:\n"+
			"    - publicAddress: 127.0.0.1\n"+
			"      sshPort: 1\n      sshUsername: root\n      sshPrivateKeyFile: %s\n", name, key.Path)
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notBundle := manifest("other")
	err := reconcileAll(t.Context(), io.Discard,
		[]string{manifest("one") + "=" + notBundle, filepath.Join(dir, "gone.yaml") + "="})
	var cut *release.TruncatedError
	if !errors.As(err, &cut) || !strings.Contains(err.Error(), "gone.yaml") {
		t.Errorf("got %v", err)
	}
}
