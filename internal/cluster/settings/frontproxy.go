package settings

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/internal/authority"
)

// TrimFrontProxyCA takes all but these keys, by their authority.KeyID, out of the CAs by which extension API servers
// know the front proxy. API servers put theirs there, and take nothing out. That none of the keys is there is an error.
func (s Setter) TrimFrontProxyCA(ctx context.Context, trusted []string) error {
	return s.edit(ctx, metav1.NamespaceSystem, "extension-apiserver-authentication", "requestheader-client-ca-file",
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
