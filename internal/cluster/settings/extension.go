package settings

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
)

const extensions = "extension-apiserver-authentication"

// ExtensionCAs are the keys, by their authority.KeyID, of the CAs by which extension API servers know clients and the
// front proxy, by the name of the authority.
func (s Setter) ExtensionCAs(ctx context.Context) (map[string][]string, error) {
	held, err := s.Kubernetes.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, extensions, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, name := range []string{observed.ClusterCA, observed.FrontProxyCA} {
		out[name] = authority.Keys([]byte(held.Data[extensionKey(name)]))
	}
	return out, nil
}

// extensionKey is where the ConfigMap has the CAs of an authority.
func extensionKey(name string) string {
	if name == observed.ClusterCA {
		return "client-ca-file"
	}
	return "requestheader-client-ca-file"
}

// TrimExtensionCAs takes all but these keys, by their authority.KeyID, out of the CAs by which extension API servers
// know the front proxy, or of the cluster's by which they know clients. API servers put theirs there, and take nothing
// out. That none of the keys is there is an error.
func (s Setter) TrimExtensionCAs(ctx context.Context, name string, trusted []string) error {
	return s.editConfigMap(ctx, metav1.NamespaceSystem, extensions, extensionKey(name),
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
