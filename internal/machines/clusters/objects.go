package clusters

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/api/cluster/v1alpha1"
)

// isStatic reports whether the Machine is a host of the Cluster in its namespace.
func isStatic(m *v1alpha1.Machine) bool {
	return m.Spec.ProviderSpec.Value.CloudProvider == v1alpha1.ProviderStatic
}

// list is a List of objects.
type list struct {
	metav1.TypeMeta `json:",inline"`

	Items []any `json:"items"`
}

// encodeObjects returns the Cluster and the Machines of its hosts as JSON, without what the API and controllers write.
func encodeObjects(is *v1alpha1.Cluster, hosts []*v1alpha1.Machine) ([]byte, error) {
	version := v1alpha1.GroupVersion().String()
	cluster := &v1alpha1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: is.Name, Namespace: is.Namespace}, Spec: is.Spec,
	}
	out := list{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []any{cluster}}
	for _, m := range hosts {
		out.Items = append(out.Items, &v1alpha1.Machine{
			TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "Machine"},
			ObjectMeta: metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace}, Spec: m.Spec,
		})
	}
	return json.Marshal(out)
}
