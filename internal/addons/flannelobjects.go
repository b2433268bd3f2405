package addons

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"kubeone/internal/desired"
)

// flannelMeta is an object's metadata; namespace "" means cluster-wide.
func flannelMeta(name, namespace string, more map[string]any) map[string]any {
	labels := map[string]any{"app.kubernetes.io/name": flannelName, "app.kubernetes.io/managed-by": "kubeone", "app": flannelName, "k8s-app": flannelName}
	for key, value := range more {
		labels[key] = value
	}
	meta := map[string]any{"name": name, "labels": labels}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return meta
}

// flannelAccess is the namespace and what flannel may do: read Nodes and pods, and write its lease on its own Node's
// annotations and status.
func flannelAccess() []object {
	privileged := map[string]any{"pod-security.kubernetes.io/enforce": "privileged"}
	rules := []any{
		rule("", []any{"pods"}, "get"),
		rule("", []any{"nodes"}, "get", "list", "watch"),
		rule("", []any{"nodes/status"}, "patch"),
	}
	return []object{
		{"apiVersion": "v1", "kind": "Namespace", "metadata": flannelMeta(flannelNamespace, "", privileged)},
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": flannelMeta(flannelName, flannelNamespace, nil)},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": flannelMeta(flannelName, "", nil), "rules": rules},
		{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": flannelMeta(flannelName, "", nil),
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": flannelName},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": flannelName, "namespace": flannelNamespace}},
		},
	}
}

func rule(group string, resources []any, verbs ...any) map[string]any {
	return map[string]any{"apiGroups": []any{group}, "resources": resources, "verbs": verbs}
}

// flannelPods is the DaemonSet. All hosts change at once when its configuration or image does: flannel only writes
// routes, which stay in the kernel while its pod is replaced.
func flannelPods(image, netConf string, endpoint desired.Endpoint) object {
	digest := sha256.Sum256([]byte(netConf))
	selector := map[string]any{"app": flannelName}
	template := map[string]any{
		"metadata": map[string]any{
			"labels": map[string]any{"app": flannelName, "k8s-app": flannelName, "tier": "node"},
			// A changed configuration must replace the pods: flannel reads it once.
			"annotations": map[string]any{"kubeone.k8c.io/net-conf-sha256": hex.EncodeToString(digest[:])},
		},
		"spec": flannelPodSpec(image, endpoint),
	}
	return object{
		"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": flannelMeta(flannelDaemonSet, flannelNamespace, map[string]any{"tier": "node"}),
		"spec": map[string]any{
			"selector":             map[string]any{"matchLabels": selector},
			"revisionHistoryLimit": 3,
			"updateStrategy":       map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": "100%"}},
			"template":             template,
		},
	}
}

func flannelPodSpec(image string, endpoint desired.Endpoint) map[string]any {
	return map[string]any{
		"hostNetwork":                   true,
		"priorityClassName":             "system-node-critical",
		"serviceAccountName":            flannelName,
		"terminationGracePeriodSeconds": 5,
		"nodeSelector":                  map[string]any{"kubernetes.io/os": "linux"},
		"tolerations":                   []any{map[string]any{"operator": "Exists", "effect": "NoSchedule"}, map[string]any{"operator": "Exists", "effect": "NoExecute"}},
		"containers":                    []any{flannelContainer(image, endpoint)},
		"volumes": []any{
			map[string]any{"name": "run", "hostPath": map[string]any{"path": "/run/flannel", "type": "DirectoryOrCreate"}},
			map[string]any{"name": "config", "configMap": map[string]any{"name": flannelConfig}},
			map[string]any{"name": "xtables-lock", "hostPath": map[string]any{"path": "/run/xtables.lock", "type": "FileOrCreate"}},
		},
	}
}

// flannelContainer runs flanneld. It uses the interface of the default route; where a host's private address is on
// another one, that is not yet told to it.
func flannelContainer(image string, endpoint desired.Endpoint) map[string]any {
	return map[string]any{
		"name": "kube-flannel", "image": image, "imagePullPolicy": "IfNotPresent",
		"command": []any{"/opt/bin/flanneld"},
		"args":    []any{"--ip-masq", "--kube-subnet-mgr"},
		"env": []any{
			fieldEnv("POD_NAME", "metadata.name"), fieldEnv("POD_NAMESPACE", "metadata.namespace"),
			map[string]any{"name": "EVENT_QUEUE_DEPTH", "value": "5000"},
			// Straight to the API's endpoint: on a new node flannel would otherwise fail until kube-proxy has the Service.
			map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": endpoint.Host},
			map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": strconv.Itoa(endpoint.Port)},
		},
		"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "50Mi"}},
		"securityContext": map[string]any{
			"privileged":   false,
			"capabilities": map[string]any{"add": []any{"NET_ADMIN", "NET_RAW"}},
		},
		"volumeMounts": []any{
			map[string]any{"name": "run", "mountPath": "/run/flannel"},
			map[string]any{"name": "config", "mountPath": "/etc/kube-flannel/"},
			map[string]any{"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
		},
	}
}

func fieldEnv(name, path string) map[string]any {
	return map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": path}}}
}
