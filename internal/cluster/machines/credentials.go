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

// CredentialsSecret is the Secret with the credentials for registries and proxies of Machines' hosts, which are those
// of the manifest's hosts. kubeone apply writes it, and the controllers read it.
const CredentialsSecret = "host-credentials"

// Keys of the Secret. Each has a JSON document.
const (
	registriesKey = "registries" // by registry; missing if no operator has set any
	proxiesKey    = "proxies"
)

type proxies struct {
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
}

// ParseCredentials reads the credentials in a Secret. They are validated like those of the manifest, since registry
// names become file names. The error never quotes the data.
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
	return fmt.Errorf("the key %q of the Secret %s/%s is invalid: run kubeone apply to write it again, with "+
		"--credentials if you use them", key, Namespace, CredentialsSecret)
}

// HasCredentials reports whether a Secret's data has the credentials; nil data is a missing Secret. Nil registries
// in c are not compared. Without any credentials, no Secret is needed.
func HasCredentials(data map[string][]byte, c desired.Credentials) bool {
	if data == nil && len(c.Registries) == 0 && c.HTTPProxy == "" && c.HTTPSProxy == "" {
		return true
	}
	has, err := ParseCredentials(data)
	if data == nil || err != nil || has.HTTPProxy != c.HTTPProxy || has.HTTPSProxy != c.HTTPSProxy {
		return false
	}
	return c.Registries == nil || has.Registries != nil && maps.Equal(has.Registries, c.Registries)
}

// newSecretData returns the Secret's new data with the credentials. If c has nil registries, those in data stay, unless
// they are unreadable.
func newSecretData(data map[string][]byte, c desired.Credentials) (map[string][]byte, error) {
	proxy, err := json.Marshal(proxies{HTTP: c.HTTPProxy, HTTPS: c.HTTPSProxy})
	out := map[string][]byte{proxiesKey: proxy}
	if had, unread := ParseCredentials(data); unread == nil && had.Registries != nil {
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

// CredentialStore stores credentials in a cluster.
type CredentialStore struct {
	Kubernetes kubernetes.Interface
}

// HostCredentials returns the stored credentials and a revision that differs after each change; nil and "" if there are
// none.
func (s CredentialStore) HostCredentials(ctx context.Context) (c *desired.Credentials, revision string, err error) {
	err = apicall.Retry(ctx, "read the credentials of hosts", "", func(ctx context.Context) error {
		held, err := s.Kubernetes.CoreV1().Secrets(Namespace).Get(ctx, CredentialsSecret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			c, revision = nil, ""
			return nil
		}
		if err != nil {
			return err
		}
		is, err := ParseCredentials(held.Data)
		c, revision = &is, string(held.UID)+"/"+held.ResourceVersion
		return err
	})
	return c, revision, err
}

// SaveHostCredentials stores the credentials for hosts of Machines if they changed. Without the controllers' namespace
// there are no such hosts, and it writes nothing.
func (s CredentialStore) SaveHostCredentials(ctx context.Context, c desired.Credentials) error {
	return apicall.Retry(ctx, "save the credentials of hosts", "", func(ctx context.Context) error {
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
		case apierrors.IsNotFound(err): // there is no such namespace
			return nil
		case apierrors.IsAlreadyExists(err):
			return &apicall.Error{Op: "create", Class: apicall.Transient, Err: err}
		}
		return err
	})
}
