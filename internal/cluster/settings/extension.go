package settings

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/authority"
	"kubeone/internal/observed"
)

// TrimExtensionCAs takes all but these keys, by their authority.KeyID, out of the CAs by which extension API servers
// know the front proxy, or of the cluster's by which they know clients. API servers put theirs there, and take nothing
// out. That none of the keys is there is an error.
func (s Setter) TrimExtensionCAs(ctx context.Context, name string, trusted []string) error {
	key := "requestheader-client-ca-file"
	if name == observed.ClusterCA {
		key = "client-ca-file"
	}
	return s.edit(ctx, metav1.NamespaceSystem, "extension-apiserver-authentication", key,
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
