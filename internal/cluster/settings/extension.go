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

// ExtensionCAs returns the CA keys that extension API servers trust for clients and for the front proxy. They are given
// by authority.KeyID, in a map by the name of the authority.
func (s Setter) ExtensionCAs(ctx context.Context) (map[string][]string, error) {
	held, err := s.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, extensionConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, name := range []string{observed.ClusterCA, observed.FrontProxyCA} {
		out[name] = authority.Keys([]byte(held.Data[extensionKey(name)]))
	}
	return out, nil
}

// extensionKey returns the key of the ConfigMap with the CAs of an authority.
func extensionKey(name string) string {
	if name == observed.ClusterCA {
		return "client-ca-file"
	}
	return "requestheader-client-ca-file"
}

// TrimExtensionCAs removes all CAs without a trusted key, by authority.KeyID, from those that extension API servers use
// for the named authority: the front proxy, or the cluster for clients. API servers add their CAs and remove none. It
// fails if no trusted key is there.
func (s Setter) TrimExtensionCAs(ctx context.Context, name string, trusted []string) error {
	return s.editConfigMap(ctx, metav1.NamespaceSystem, extensionConfigMap, extensionKey(name),
		func(text string) (string, error) {
			has, err := authority.ParsePublic([]byte(text))
			if err != nil {
				return "", err
			}
			left, err := has.Only(slices.DeleteFunc(has.Keys(), func(key string) bool {
				return !slices.Contains(trusted, key)
			})...)
			if err != nil {
				return "", err
			}
			if len(left.Keys()) == 0 {
				return "", fmt.Errorf("it has none of the CAs that the API servers trust")
			}
			return string(left.Text()), nil
		})
}
