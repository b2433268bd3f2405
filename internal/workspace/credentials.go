package workspace

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/cluster"
	"kubeone/internal/engine"
	"kubeone/internal/model/desired"
	"kubeone/internal/probe"
	"kubeone/internal/text/pattern"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// hostCredentials returns the credentials that hosts should have for registries and proxies. Registries is nil if hosts
// keep the registry credentials that they have.
func (w *Workspace) hostCredentials() *desired.Credentials {
	s := w.loaded.Secrets
	out := &desired.Credentials{HTTPProxy: s.HTTPProxy, HTTPSProxy: s.HTTPSProxy}
	if !s.AllRegistries {
		return out
	}
	out.Registries = make(map[string]desired.RegistryAuth, len(s.Registries))
	for registry, auth := range s.Registries {
		out.Registries[registry] = desired.RegistryAuth(auth)
	}
	return out
}

// registrySecrets returns the secret parts of registry credentials.
func registrySecrets(r v1beta2.ContainerdRegistryAuthConfig) []string {
	out := []string{r.Password, r.Auth, r.IdentityToken}
	if text, err := base64.StdEncoding.DecodeString(r.Auth); err == nil {
		_, password, _ := strings.Cut(string(text), ":")
		out = append(out, password)
	}
	return out
}

// knownCA is the file on this machine that contains the hash of the known cluster CA. It is safe for concurrent use.
type knownCA struct {
	path string

	mu    sync.Mutex
	ca    string
	saved string // content of the file
}

// caHashPattern matches the content of the file, in the format of --discovery-token-ca-cert-hash in kubeadm.
var caHashPattern = pattern.Lazy(`^sha256:[0-9a-f]{64}$`)

// openKnownCA reads the file, if it exists. A CA certificate from the operator takes precedence; it is saved after the
// cluster has presented it.
func openKnownCA(path, certificate string) (*knownCA, error) {
	k := &knownCA{path: path}
	if certificate != "" {
		pem, err := os.ReadFile(certificate) // #nosec G304 -- the operator names it
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		if k.ca = probe.CAHash(pem); k.ca == "" {
			return nil, fmt.Errorf("--ca-file %s does not contain a certificate", certificate)
		}
		return k, nil
	}
	text, err := os.ReadFile(path) // #nosec G304 -- our own
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	k.saved = strings.TrimSpace(string(text))
	if k.ca = k.saved; !caHashPattern().MatchString(k.ca) {
		return nil, fmt.Errorf("%s does not contain a CA hash (sha256: and 64 hexadecimal digits): correct it, or "+
			"remove it to trust the CA that the cluster presents", path)
	}
	return k, nil
}

// CA returns the hash of the cluster CA, or "" if it is not known.
func (k *knownCA) CA() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ca
}

// Know saves the hash in the file, unless it is already there. "" removes the file.
func (k *knownCA) Know(ca string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ca == "" {
		if err := os.Remove(k.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		k.ca, k.saved = "", ""
		return nil
	}
	if k.saved == ca {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return err
	}
	next := k.path + ".new"
	if err := os.WriteFile(next, []byte(ca+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(next, k.path); err != nil {
		return err
	}
	k.ca, k.saved = ca, ca
	return nil
}

// errNoKubeconfig says that no kubeconfig was found, or that it is empty.
var errNoKubeconfig = errors.New("there is no kubeconfig: give one with --kubeconfig; kubeone kubeconfig prints it")

// OpenKubeconfig reads the operator's kubeconfig, and the files that it refers to. If path is "", it uses the same
// files as kubectl: $KUBECONFIG, else ~/.kube/config. The error is an *engine.ConfigError if no kubeconfig is usable.
func OpenKubeconfig(path string) (cluster.Access, error) { return OpenKubeconfigContext(path, "") }

// OpenKubeconfigContext is like OpenKubeconfig, with the named context; "" is the current one.
func OpenKubeconfigContext(path, name string) (cluster.Access, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	raw, err := rules.Load()
	if err == nil && clientcmdapi.IsConfigEmpty(raw) {
		err = errNoKubeconfig
	}
	if err == nil && name != "" {
		raw.CurrentContext = name
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

// ServiceAccountDir is the directory with the service account files in a pod.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// OpenKubeconfigOrPod is like OpenKubeconfig. In a pod without a kubeconfig, it uses the service account of the pod,
// with the files in serviceAccountDir. It then connects through the Service of the API server, and reads the token
// again for each request.
//
// Source: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
func OpenKubeconfigOrPod(path, serviceAccountDir string) (cluster.Access, error) {
	access, err := OpenKubeconfig(path)
	host := os.Getenv("KUBERNETES_SERVICE_HOST")
	if !errors.Is(err, errNoKubeconfig) || host == "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return access, err
	}
	token, ca := filepath.Join(serviceAccountDir, "token"), filepath.Join(serviceAccountDir, "ca.crt")
	switch _, statErr := os.Stat(token); {
	case errors.Is(statErr, fs.ErrNotExist):
		return access, err
	case statErr != nil:
		return access, &engine.ConfigError{Err: fmt.Errorf("read the service account of the pod: %w", statErr)}
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return access, &engine.ConfigError{Err: fmt.Errorf("read the service account of the pod: %w", err)}
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
