//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestEmbeddedAddons switches on the addons that kubeone contains, in a running cluster, and uses what they provide.
func TestEmbeddedAddons(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{
		Name: "embedded", ControlPlanes: 1, Workers: 1, Addons: []string{"metrics-server", "default-storage-class"},
	})
	s.runParts(
		part{"a new cluster gets default addons unless the manifest says otherwise", embeddedInstall},
		part{"kubectl top and an HPA have figures", metricsAreServed},
		part{"a volume claim is bound", volumeIsBound},
		part{"names resolve without cluster DNS", cacheAnswers},
		part{"addons are switched off", embeddedOff},
	)
}

// embeddedInstall installs with a manifest that does not mention metrics-server.
func embeddedInstall(s *scenario) {
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		delete(all, "features")
		all["addons"] = map[string]any{"addons": []any{map[string]any{"name": "default-storage-class"}}}
	})))
	s.runCommand(0, []string{"apply", "-y"}, "apply addon metrics-server", "apply addon nodelocaldns",
		"apply addon default-storage-class",
		"Done. The cluster matches the manifest.")
	s.must(s.FetchKubeconfig(s.Context()))
	s.must(s.ImportAgnhost(s.Context(), s.Machines()))
	s.nothingToDo()
}

// busyWorkload is a Deployment that uses a processor, and an HPA that has it scaled.
const busyWorkload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: busy, namespace: default}
spec:
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      containers:
      - name: busy
        image: ` + operator.AgnhostImage + `
        command: [/bin/sh, -c, "while :; do :; done"]
        resources: {requests: {cpu: 20m}, limits: {cpu: 100m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
`

func metricsAreServed(s *scenario) {
	s.eventually("figures of every node", 3*time.Minute, func(ctx context.Context) error {
		out, err := s.Kube(ctx, "top", "nodes", "--no-headers")
		if lines := strings.Count(out, "\n"); err != nil || lines < len(s.Machines())-1 || strings.Contains(out, "unknown") {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	s.applyText(busyWorkload)
	s.eventually("an HPA that scales up", 5*time.Minute, func(ctx context.Context) error {
		out, err := s.Kube(ctx, "get", "deployment", "busy", "-o", "jsonpath={.spec.replicas}")
		if err != nil || out == "1" {
			return fmt.Errorf("%s replicas: %w", out, err)
		}
		return nil
	})
	s.runKubectl("delete", "hpa/busy", "deployment/busy", "--wait=false")
}

// claimingPod uses a volume of the default StorageClass.
const claimingPod = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 10Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer, namespace: default}
spec:
  restartPolicy: Never
  containers:
  - name: writer
    image: ` + operator.AgnhostImage + `
    command: [/bin/sh, -c, "echo kept >/data/file && cat /data/file"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
`

func volumeIsBound(s *scenario) {
	s.applyText(claimingPod)
	s.eventually("a pod that has written to its volume", 3*time.Minute, func(ctx context.Context) error {
		out, err := s.Kube(ctx, "logs", "writer")
		if err != nil || strings.TrimSpace(out) != "kept" {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	s.checkEqual("the claim", "Bound", s.runKubectl("get", "pvc", "data", "-o", "jsonpath={.status.phase}"))
	s.runKubectl("delete", "pod/writer", "pvc/data")
}

// resolvingPod asks for names with agnhost, which has a resolver of its own.
const resolvingPod = `apiVersion: v1
kind: Pod
metadata: {name: resolver, namespace: default}
spec:
  containers:
  - {name: resolver, image: ` + operator.AgnhostImage + `, args: [netexec, --http-port=8080]}
`

// cacheAnswers resolves a name that the cache knows while no DNS server runs.
func cacheAnswers(s *scenario) {
	s.applyText(resolvingPod)
	s.runKubectl("wait", "--for=condition=Ready", "pod/resolver", "--timeout=120s")
	if conf := s.runKubectl("exec", "resolver", "--", "/bin/cat", "/etc/resolv.conf"); !strings.Contains(conf,
		"nameserver 169.254.20.10") {
		s.Fatalf("pods do not use the cache:\n%s", conf)
	}
	resolve := func(ctx context.Context) error {
		out, err := s.Kube(ctx, "get", "--raw", "/api/v1/namespaces/default/pods/resolver:8080/proxy/dial?host="+
			"kubernetes.default.svc.cluster.local.&port=443&request=hostname&protocol=http&tries=1")
		if err != nil || !strings.Contains(out, "responses") { // the API server's "this is HTTPS" is a response
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	}
	s.eventually("a name that resolves", time.Minute, resolve)
	s.runKubectl("-n", "kube-system", "scale", "deployment/coredns", "--replicas=0")
	s.runKubectl("-n", "kube-system", "wait", "--for=delete", "pod", "-l", "k8s-app=kube-dns", "--timeout=120s")
	s.must(resolve(s.Context()))
	s.runKubectl("delete", "pod/resolver", "--wait=false")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.") // scales cluster DNS up
}

func embeddedOff(s *scenario) {
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		setFeatures(all, map[string]any{})
		delete(all, "addons")
	})))
	s.runCommand(0, []string{"apply", "-y"}, "remove addon metrics-server", "remove addon nodelocaldns",
		"remove addon default-storage-class",
		"the manifest has no addons", "Done. The cluster matches the manifest.")
	if out := s.runKubectl("get", "apiservices,storageclasses", "-o", "name"); strings.Contains(out, "metrics.k8s.io") ||
		strings.Contains(out, "local-path") {
		s.Errorf("objects of removed addons are left:\n%s", out)
	}
	s.nothingToDo()
}

// applyText applies objects with kubectl.
func (s *scenario) applyText(text string) {
	s.Helper()
	_, err := s.Feed(s.Context(), text, "apply", "-f", "-")
	s.must(err)
}
