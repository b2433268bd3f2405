package settings

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
)

const extensionConfigMap = "extension-apiserver-authentication"

// ExtensionCAs returns the keys (authority.KeyID) of the CAs that extension API servers trust, by the name of the
// authority: the cluster CA for clients, and the front-proxy CA.
func (s Setter) ExtensionCAs(ctx context.Context) (map[string][]string, error) {
	held, err := s.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, extensionConfigMap,
		metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, name := range []string{observed.ClusterCA, observed.FrontProxyCA} {
		out[name] = authority.Keys([]byte(held.Data[extensionKey(name)]))
	}
	return out, nil
}

// extensionKey returns the key in the ConfigMap that contains the CAs of the named authority.
func extensionKey(name string) string {
	if name == observed.ClusterCA {
		return "client-ca-file"
	}
	return "requestheader-client-ca-file"
}

// TrimExtensionCAs removes untrusted CAs from those that extension API servers use for the named authority. Trusted
// contains the keys (authority.KeyID) to keep. This is necessary because API servers add their CAs but never remove
// any. It fails if the ConfigMap contains no trusted CA.
func (s Setter) TrimExtensionCAs(ctx context.Context, name string, trusted []string) error {
	return s.editConfigMap(ctx, metav1.NamespaceSystem, extensionConfigMap, extensionKey(name),
		func(text string) (string, error) {
			present, err := authority.ParsePublic([]byte(text))
			if err != nil {
				return "", err
			}
			kept, err := present.Only(slices.DeleteFunc(present.Keys(), func(key string) bool {
				return !slices.Contains(trusted, key)
			})...)
			if err != nil {
				return "", err
			}
			if len(kept.Keys()) == 0 {
				return "", fmt.Errorf("it contains none of the CAs that the API servers trust")
			}
			return string(kept.Text()), nil
		})
}
