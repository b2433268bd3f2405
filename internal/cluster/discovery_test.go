package cluster

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

const adminKubeconfig = `apiVersion: v1
kind: Config
current-context: admin@demo
clusters:
- name: demo
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Y2E=}
contexts:
- name: admin@demo
  context: {cluster: demo, user: admin}
users:
- name: admin
  user: {client-certificate-data: Y2VydA==, client-key-data: c2VjcmV0}
`

func TestDiscoveryHoldsTheCAAndNoCredentials(t *testing.T) {
	t.Parallel()
	text, err := Access{Kubeconfig: []byte(adminKubeconfig)}.Discovery("https://lb:6443")
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"c2VjcmV0", "Y2VydA==", "admin"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the discovery file holds %q:\n%s", secret, text)
		}
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	// kubeadm prefers an unnamed cluster to a context with a user.
	unnamed := config.Clusters[""]
	if unnamed == nil || unnamed.Server != "https://lb:6443" || string(unnamed.CertificateAuthorityData) != "ca" {
		t.Errorf("the discovery file's cluster is %+v", unnamed)
	}
}

func TestDiscoveryWithoutACAIsRefused(t *testing.T) {
	t.Parallel()
	noCA := strings.Replace(adminKubeconfig, ", certificate-authority-data: Y2E=", "", 1)
	for name, kubeconfig := range map[string]string{"no CA": noCA, "garbage": "{", "empty": ""} {
		if _, err := (Access{Kubeconfig: []byte(kubeconfig)}).Discovery("https://lb:6443"); err == nil {
			t.Errorf("%s: a discovery file was made without anything to verify the cluster by", name)
		}
	}
}
