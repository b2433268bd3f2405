// Package system describes kube-proxy and cluster DNS, which kubeadm applies to every cluster, as far as they are
// determined. It is pure: values of the desired cluster, and functions of live objects.
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

// The components, by the app label of their pods.
const (
	KubeProxy = "kube-proxy"
	DNS       = "kube-dns"
)

// The location of their objects.
const (
	Namespace     = "kube-system"
	DNSDeployment = "coredns"
)

// dnsReplicas is the number of DNS servers that kubeadm creates, and the number for a cluster without any.
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

// Images returns the images of the components, by the app label of their pods, from the names of a release's images.
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

// Components returns the required state of the objects, with these images. Of the image of cluster DNS only the
// repository counts: tags follow the version (decide.Input.System). The pods cannot show this: a Deployment whose new
// pods do not start still has running old ones.
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
			Texts:   func(object map[string]any) (is, will string) { return renderProxyTexts(object, want) },
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
			Texts: func(object map[string]any) (is, will string) {
				replicas, _ := valueAt(object, "spec", "replicas").(int64)
				will = fmt.Sprintf("spec.replicas: %d", DNSReplicas(want, int32(replicas))) //nolint:gosec // as above
				return fmt.Sprintf("spec.replicas: %d", replicas), will
			},
		},
	}}
}

// DNSReplicas returns the required number of DNS servers: the manifest's, else have, but never zero.
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

// requireText requires a text that is not empty.
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

// requireImageFrom requires an image from the same repository in the container of cluster DNS; "" requires nothing.
func requireImageFrom(image string) func(map[string]any) []string {
	if image == "" {
		return nil
	}
	return func(object map[string]any) []string {
		containers, _ := valueAt(object, "spec", "template", "spec", "containers").([]any)
		for _, c := range containers {
			of, _ := c.(map[string]any)
			if has, _ := of["image"].(string); of["name"] == DNSDeployment && repositoryOf(has) == repositoryOf(image) {
				return nil
			}
		}
		return []string{"spec.template.spec.containers.image"}
	}
}

// repositoryOf returns an image's name without its tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		return image[:at]
	}
	return image
}

// requireBindingTo requires a binding to a ServiceAccount of kube-system; other subjects do not matter.
func requireBindingTo(account string) func(map[string]any) []string {
	return func(object map[string]any) []string {
		subjects, _ := valueAt(object, "subjects").([]any)
		if !slices.ContainsFunc(subjects, func(s any) bool {
			of, _ := s.(map[string]any)
			return of["kind"] == "ServiceAccount" && of["name"] == account && of["namespace"] == Namespace
		}) {
			return []string{"subjects"}
		}
		return nil
	}
}

// linux is kubeadm's node selector for kube-proxy: everywhere. A narrower selector stops it on some or all nodes. The
// placement of cluster DNS is up to the cluster's operator.
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
