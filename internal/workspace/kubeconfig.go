package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kubeone/internal/cluster"
	"kubeone/internal/engine"
)

// errNoKubeconfig says that nobody has said which cluster is meant.
var errNoKubeconfig = errors.New("there is no kubeconfig: give one with --kubeconfig; kubeone kubeconfig prints it")

// OpenKubeconfig reads a kubeconfig of the operator's own, as kubectl finds it where path is "": $KUBECONFIG, else
// ~/.kube/config. Files that it names are read now. It is an *engine.ConfigError where none is usable.
func OpenKubeconfig(path string) (cluster.Access, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	raw, err := rules.Load()
	if err == nil && clientcmdapi.IsConfigEmpty(raw) {
		err = errNoKubeconfig
	}
	if err == nil {
		err = clientcmdapi.MinifyConfig(raw)
	}
	if err == nil {
		err = clientcmdapi.FlattenConfig(raw)
	}
	if err != nil {
		return cluster.Access{}, &engine.ConfigError{Err: fmt.Errorf("kubeconfig: %w", err)}
	}
	text, err := clientcmd.Write(*raw)
	return cluster.Access{Kubeconfig: text}, err
}

// ServiceAccountDir is where a pod has the files of its service account.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// OpenKubeconfigOrPod is as OpenKubeconfig. In a pod where no kubeconfig is named and none is found, access is that of
// the pod's service account, whose files are in the directory: through the cluster's Service, with the token as it is
// in its file at the time of each request.
//
// Source: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
func OpenKubeconfigOrPod(path, serviceAccountDir string) (cluster.Access, error) {
	access, err := OpenKubeconfig(path)
	host := os.Getenv("KUBERNETES_SERVICE_HOST")
	if !errors.Is(err, errNoKubeconfig) || host == "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return access, err
	}
	token, ca := filepath.Join(serviceAccountDir, "token"), filepath.Join(serviceAccountDir, "ca.crt")
	switch _, none := os.Stat(token); {
	case errors.Is(none, fs.ErrNotExist):
		return access, err
	case none != nil:
		return access, &engine.ConfigError{Err: fmt.Errorf("the pod's service account: %w", none)}
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return access, &engine.ConfigError{Err: fmt.Errorf("the pod's service account: %w", err)}
	}
	const name = "pod"
	port := cmp.Or(os.Getenv("KUBERNETES_SERVICE_PORT"), "443")
	out := clientcmdapi.NewConfig()
	out.CurrentContext = name
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + net.JoinHostPort(host, port),
		CertificateAuthorityData: text,
	}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: token}
	text, err = clientcmd.Write(*out)
	return cluster.Access{Kubeconfig: text, TokenFiles: true}, err
}
