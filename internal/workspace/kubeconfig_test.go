package workspace

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kubeone/internal/cluster"
	"kubeone/internal/engine"
)

// inPod sets up the environment and the files of a pod whose API is the server. There is no kubeconfig.
func inPod(t *testing.T, server *httptest.Server) (dir string) {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", u.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", u.Port())
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(t, filepath.Join(dir, "ca.crt"), string(ca))
	write(t, filepath.Join(dir, "token"), "first")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAPodIsItsServiceAccount(t *testing.T) { //nolint:paralleltest // it sets the environment
	bearers := make(chan string, 2)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearers <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "x"}}`))
	}))
	defer server.Close()
	dir := inPod(t, server)
	access, err := OpenKubeconfigOrPod("", dir)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(access.Kubeconfig), "first") {
		t.Error("the token is in the kubeconfig, and would stay as it is")
	}
	ours, err := cluster.Connect(access)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	config, err := clientcmd.RESTConfigFromKubeConfig(access.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	others, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "token"), "second") // as the kubelet does
	for name, kube := range map[string]kubernetes.Interface{"our client": ours.Kubernetes, "another": others} {
		if _, err := kube.CoreV1().Namespaces().Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := <-bearers; got != "Bearer second" {
			t.Errorf("%s: the API is told %q", name, got)
		}
	}
	if _, err := access.AdminKubeconfig("demo"); err == nil {
		t.Error("a kubeconfig with a pod's file is handed out")
	}
	access.TokenFiles = false
	if _, err := cluster.Connect(access); err == nil {
		t.Error("the file is read without permission")
	}
}

func TestWhereThereIsNoPod(t *testing.T) { //nolint:paralleltest // it sets the environment
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	none, given := "there is no kubeconfig", "kubeconfig: "
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string) (path string)
		says   string
	}{
		"no Service": {func(t *testing.T, _ string) string {
			t.Helper()
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			return ""
		}, none},
		"no token": {func(t *testing.T, dir string) string {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, "token")); err != nil {
				t.Fatal(err)
			}
			return ""
		}, none},
		"no CA": {func(t *testing.T, dir string) string {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, "ca.crt")); err != nil {
				t.Fatal(err)
			}
			return ""
		}, "read the service account of the pod: open "},
		"a kubeconfig that is named, and is not there": {func(_ *testing.T, dir string) string {
			return filepath.Join(dir, "none")
		}, given},
		"a kubeconfig of the environment that is not there": {func(t *testing.T, dir string) string {
			t.Helper()
			t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
			return ""
		}, none},
		"a kubeconfig that is none": {func(t *testing.T, dir string) string {
			t.Helper()
			write(t, filepath.Join(dir, "file"), "apiVersion: [")
			return filepath.Join(dir, "file")
		}, given},
	} {
		t.Run(name, func(t *testing.T) {
			dir := inPod(t, server)
			_, err := OpenKubeconfigOrPod(c.change(t, dir), dir)
			var mistake *engine.ConfigError
			if !errors.As(err, &mistake) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}
