// Package system describes the desired state of kube-proxy and cluster DNS, which kubeadm applies to every cluster. It
// is pure: it consists of values of the desired cluster and functions of live objects.
package system

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubeone/internal/cluster/live"
	"kubeone/internal/model/desired"
)

// Names of the components. Each is the app label of the pods.
const (
	KubeProxy = "kube-proxy"
	DNS       = "kube-dns"
)

// Namespace and name of the objects.
const (
	Namespace     = "kube-system"
	DNSDeployment = "coredns"
)

// dnsReplicas is the number of DNS servers that kubeadm creates. It also applies to a cluster that has none.
const dnsReplicas = 2

func coreKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: kind}
}

func appsKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
}

func rbacKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind}
}

// Images returns the images of the components among the artifacts of a release, by component name.
func Images(names desired.Artifacts) map[string]string {
	out := map[string]string{}
	for _, i := range names.Images {
		switch {
		case strings.Contains(i.Name, "/kube-proxy:"):
			out[KubeProxy] = i.Name
		case strings.Contains(i.Name, "/coredns:"):
			out[DNS] = i.Name
		}
	}
	return out
}

// Components returns the required state of the objects, with these images. Only the repository of the cluster DNS image
// is checked here: its tag depends on the Kubernetes version (decide.Input.System). Checking pods is not enough,
// because a Deployment whose new pods do not start still has running old pods.
func Components(want desired.Cluster, images map[string]string) []live.Component {
	out := []live.Component{dnsComponent(want, images[DNS])}
	if !want.Network.KubeProxy.Skip {
		out = append(out, kubeProxy(want))
	}
	return out
}

func kubeProxy(want desired.Cluster) live.Component {
	return live.Component{Name: KubeProxy, Checks: []live.Check{
		{Kind: coreKind("ServiceAccount"), Namespace: Namespace, Name: "kube-proxy"},
		{
			Kind: rbacKind("ClusterRoleBinding"), Name: "kubeadm:node-proxier",
			Differs: requireBindingTo("kube-proxy"),
		},
		{Kind: rbacKind("Role"), Namespace: Namespace, Name: "kube-proxy"},
		{Kind: rbacKind("RoleBinding"), Namespace: Namespace, Name: "kube-proxy"},
		{Kind: coreKind("ConfigMap"), Namespace: Namespace, Name: "kube-proxy", Differs: unreadableProxyKeys},
		{Kind: appsKind("DaemonSet"), Namespace: Namespace, Name: "kube-proxy", Differs: requireEveryNode},
		{
			Kind: coreKind("ConfigMap"), Namespace: Namespace, Name: "kube-proxy", Settings: true,
			Differs: func(object map[string]any) []string { return ProxySettings(object, want) },
			Texts:   func(object map[string]any) (current, planned string) { return renderProxyTexts(object, want) },
		},
	}}
}

func dnsComponent(want desired.Cluster, image string) live.Component {
	return live.Component{Name: DNS, Checks: []live.Check{
		{Kind: coreKind("ServiceAccount"), Namespace: Namespace, Name: "coredns"},
		{Kind: rbacKind("ClusterRole"), Name: "system:coredns"},
		{Kind: rbacKind("ClusterRoleBinding"), Name: "system:coredns", Differs: requireBindingTo("coredns")},
		{Kind: coreKind("ConfigMap"), Namespace: Namespace, Name: "coredns", Differs: requireText("data", "Corefile")},
		{Kind: coreKind("Service"), Namespace: Namespace, Name: "kube-dns", Differs: requireDNSSelector},
		{Kind: appsKind("Deployment"), Namespace: Namespace, Name: DNSDeployment, Differs: requireImageFrom(image)},
		{
			Kind: appsKind("Deployment"), Namespace: Namespace, Name: DNSDeployment, Settings: true,
			Differs: func(object map[string]any) []string {
				replicas, _ := valueAt(object, "spec", "replicas").(int64)
				if replicas != int64(DNSReplicas(want, int32(replicas))) { //nolint:gosec // the API has an int32
					return []string{"spec.replicas"}
				}
				return nil
			},
			Texts: func(object map[string]any) (current, planned string) {
				replicas, _ := valueAt(object, "spec", "replicas").(int64)
				planned = fmt.Sprintf("spec.replicas: %d",
					DNSReplicas(want, int32(replicas))) //nolint:gosec // as above
				return fmt.Sprintf("spec.replicas: %d", replicas), planned
			},
		},
	}}
}

// DNSReplicas returns the required number of DNS servers: the number in the manifest or, if it is not set, the current
// number, but never zero.
func DNSReplicas(want desired.Cluster, have int32) int32 {
	switch {
	case want.Network.DNS.Replicas > 0:
		return want.Network.DNS.Replicas
	case have > 0:
		return have
	}
	return dnsReplicas
}

// valueAt returns the value at the path; nil if there is none.
func valueAt(object map[string]any, path ...string) any {
	var value any = object
	for _, key := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

// requireText returns a check that the field at the path is a non-empty text.
func requireText(path ...string) func(map[string]any) []string {
	return func(object map[string]any) []string {
		if text, _ := valueAt(object, path...).(string); text != "" {
			return nil
		}
		return []string{joinPath(path)}
	}
}

func joinPath(path []string) string {
	text := ""
	for i, key := range path {
		if i > 0 {
			text += "."
		}
		text += key
	}
	return text
}

// requireImageFrom returns a check that the cluster DNS container uses an image from the same repository. It returns
// nil for "", which requires nothing.
func requireImageFrom(image string) func(map[string]any) []string {
	if image == "" {
		return nil
	}
	return func(object map[string]any) []string {
		containers, _ := valueAt(object, "spec", "template", "spec", "containers").([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			name, _ := container["image"].(string)
			if container["name"] == DNSDeployment && repositoryOf(name) == repositoryOf(image) {
				return nil
			}
		}
		return []string{"spec.template.spec.containers.image"}
	}
}

// repositoryOf returns the image name without its tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		return image[:at]
	}
	return image
}

// requireBindingTo returns a check that a binding includes this ServiceAccount in kube-system. It may include other
// subjects.
func requireBindingTo(account string) func(map[string]any) []string {
	return func(object map[string]any) []string {
		subjects, _ := valueAt(object, "subjects").([]any)
		if !slices.ContainsFunc(subjects, func(s any) bool {
			subject, _ := s.(map[string]any)
			return subject["kind"] == "ServiceAccount" && subject["name"] == account &&
				subject["namespace"] == Namespace
		}) {
			return []string{"subjects"}
		}
		return nil
	}
}

// linuxSelector is the node selector that kubeadm sets for kube-proxy. It selects every node. A narrower selector would
// stop kube-proxy on some nodes. The operator decides where cluster DNS runs.
var linuxSelector = map[string]any{"kubernetes.io/os": "linux"}

func requireEveryNode(object map[string]any) []string {
	var out []string
	if !reflect.DeepEqual(valueAt(object, "spec", "template", "spec", "nodeSelector"), any(linuxSelector)) {
		out = append(out, "spec.template.spec.nodeSelector")
	}
	if valueAt(object, "spec", "template", "spec", "affinity") != nil {
		out = append(out, "spec.template.spec.affinity")
	}
	return out
}

func requireDNSSelector(object map[string]any) []string {
	if valueAt(object, "spec", "selector", "k8s-app") != DNS {
		return []string{"spec.selector"}
	}
	return nil
}
