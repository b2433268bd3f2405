package addons

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kubeone/internal/desired"
)

// Removable is what an addon consists of that can be taken away, as far as that is known without what it was made of:
// kinds, namespaces and names.
func Removable(name string) ([]unstructured.Unstructured, error) {
	if name != desired.ControllersAddon {
		return nil, fmt.Errorf("addon %s cannot be taken away", name)
	}
	return nil, nil
}
