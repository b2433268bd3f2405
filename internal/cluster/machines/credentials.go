package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/cluster/apicall"
	"kubeone/internal/model/desired"
)

// CredentialsSecret is the Secret with the registry and proxy credentials for Machine hosts. They are the same as for
// the hosts in the manifest. kubeone apply writes the Secret, and the controllers read it.
const CredentialsSecret = "host-credentials"

// Keys in the Secret. Each value is a JSON document.
const (
	registriesKey = "registries" // credentials by registry; missing if none were ever set
	proxiesKey    = "proxies"
)

type proxies struct {
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
}

// ParseCredentials reads the credentials from the data of the Secret. It validates them like those in the manifest,
// because registry names become file names. The error never quotes the data.
func ParseCredentials(data map[string][]byte) (desired.Credentials, error) {
	var out desired.Credentials
	var registries map[string]v1beta2.ContainerdRegistryAuthConfig
	var proxy proxies
	for key, into := range map[string]any{registriesKey: &registries, proxiesKey: &proxy} {
		if text := data[key]; len(text) > 0 && json.Unmarshal(text, into) != nil {
			return out, invalidKeyError(key)
		}
	}
	if strings.ContainsFunc(proxy.HTTP+proxy.HTTPS, unicode.IsControl) {
		return out, invalidKeyError(proxiesKey)
	}
	out.HTTPProxy, out.HTTPSProxy = proxy.HTTP, proxy.HTTPS
	if registries == nil {
		return out, nil
	}
	out.Registries = make(map[string]desired.RegistryAuth, len(registries))
	for name, auth := range registries {
		wrong, _ := v1beta2.RegistryProblem(name)
		if _, odd, _ := auth.Problem(); wrong != "" || odd != "" {
			return desired.Credentials{}, invalidKeyError(registriesKey)
		}
		out.Registries[name] = desired.RegistryAuth(auth)
	}
	return out, nil
}

func invalidKeyError(key string) error {
	return fmt.Errorf("the key %q in the Secret %s/%s is invalid: run kubeone apply to write it again, with "+
		"--credentials if you use them", key, Namespace, CredentialsSecret)
}

// HasCredentials reports whether the data of the Secret contains the credentials. Nil data means that the Secret does
// not exist, which is correct if c has no credentials. If the registries in c are nil, they are not compared.
func HasCredentials(data map[string][]byte, c desired.Credentials) bool {
	if data == nil && len(c.Registries) == 0 && c.HTTPProxy == "" && c.HTTPSProxy == "" {
		return true
	}
	stored, err := ParseCredentials(data)
	if data == nil || err != nil || stored.HTTPProxy != c.HTTPProxy || stored.HTTPSProxy != c.HTTPSProxy {
		return false
	}
	return c.Registries == nil || stored.Registries != nil && maps.Equal(stored.Registries, c.Registries)
}

// newSecretData returns the new data for the Secret. If the registries in c are nil, the registries in data are kept
// unless they are invalid.
func newSecretData(data map[string][]byte, c desired.Credentials) (map[string][]byte, error) {
	proxy, err := json.Marshal(proxies{HTTP: c.HTTPProxy, HTTPS: c.HTTPSProxy})
	out := map[string][]byte{proxiesKey: proxy}
	if stored, invalid := ParseCredentials(data); invalid == nil && stored.Registries != nil {
		out[registriesKey] = data[registriesKey]
	}
	if c.Registries == nil || err != nil {
		return out, err
	}
	registries := make(map[string]v1beta2.ContainerdRegistryAuthConfig, len(c.Registries))
	for name, auth := range c.Registries {
		registries[name] = v1beta2.ContainerdRegistryAuthConfig(auth)
	}
	out[registriesKey], err = json.Marshal(registries) //nolint:gosec // the Secret is meant for credentials
	return out, err
}

// CredentialStore stores the credentials for Machine hosts in a cluster.
type CredentialStore struct {
	Kubernetes kubernetes.Interface
}

// HostCredentials returns the stored credentials and a revision that changes with every write. It returns nil and "" if
// there are none.
func (s CredentialStore) HostCredentials(ctx context.Context) (c *desired.Credentials, revision string, err error) {
	err = apicall.Retry(ctx, "read the host credentials", "", func(ctx context.Context) error {
		held, err := s.Kubernetes.CoreV1().Secrets(Namespace).Get(ctx, CredentialsSecret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			c, revision = nil, ""
			return nil
		}
		if err != nil {
			return err
		}
		stored, err := ParseCredentials(held.Data)
		c, revision = &stored, string(held.UID)+"/"+held.ResourceVersion
		return err
	})
	return c, revision, err
}

// SaveHostCredentials stores the credentials for Machine hosts if they changed. If the namespace of the controllers
// does not exist, there are no such hosts, and it writes nothing.
func (s CredentialStore) SaveHostCredentials(ctx context.Context, c desired.Credentials) error {
	return apicall.Retry(ctx, "save the host credentials", "", func(ctx context.Context) error {
		secrets := s.Kubernetes.CoreV1().Secrets(Namespace)
		held, err := secrets.Get(ctx, CredentialsSecret, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		if err != nil && !absent {
			return err
		}
		if absent {
			held = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: CredentialsSecret, Namespace: Namespace}}
		}
		if HasCredentials(held.Data, c) {
			return nil
		}
		if held.Data, err = newSecretData(held.Data, c); err != nil {
			return err
		}
		if !absent {
			_, err = secrets.Update(ctx, held, metav1.UpdateOptions{FieldManager: apicall.FieldManager})
			return err
		}
		_, err = secrets.Create(ctx, held, metav1.CreateOptions{FieldManager: apicall.FieldManager})
		switch {
		case apierrors.IsNotFound(err): // the namespace does not exist
			return nil
		case apierrors.IsAlreadyExists(err):
			return &apicall.Error{Op: "create", Class: apicall.Transient, Err: err}
		}
		return err
	})
}
