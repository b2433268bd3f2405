//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubeone/test/e2e/operator"
)

// web is a pod on every node, a Service in front of them, and another with a node port.
const web = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations: [{operator: Exists}]
      containers:
      - name: web
        image: ` + operator.AgnhostImage + `
        imagePullPolicy: Never
        args: [netexec, --http-port=8080, --udp-port=-1]
        readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: door}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
`

func checkWorkload(s *scenario) {
	workloadRuns(s)
	s.apiSurvivesEachHost()
}

// workloadRuns checks pods, Services and DNS without pausing hosts.
func workloadRuns(s *scenario) {
	s.must(s.ImportAgnhost(s.Context(), s.Machines()))
	_, err := s.Feed(s.Context(), web, "apply", "-f", "-")
	s.must(err)
	_, err = s.Kube(s.Context(), "rollout", "status", "daemonset/web", "--timeout=180s")
	s.must(err)
	pods := s.webPods()
	s.podsReachEachOther(pods)
	s.servicesAnswer(pods)
	s.logsAndExec(pods)
	s.dnsNeverRestarted()
}

// webPods returns the pods by node name. There is one on each node.
func (s *scenario) webPods() map[string]corev1.Pod {
	var list corev1.PodList
	s.must(s.Object(s.Context(), &list, "pods", "-l", "app=web"))
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Spec.NodeName] = pod
	}
	s.checkEqual("nodes with a pod", len(s.Members()), len(pods))
	return pods
}

// podsReachEachOther requests the name of every pod from every other pod, by address.
func (s *scenario) podsReachEachOther(pods map[string]corev1.Pod) {
	var script strings.Builder
	var want []string
	for _, from := range pods {
		for _, to := range pods {
			fmt.Fprintf(&script, "curl -s -m 5 "+
				"'http://%s:8080/dial?host=%s&port=8080&protocol=http&request=hostname&tries=1'; echo\n",
				from.Status.PodIP, to.Status.PodIP)
			want = append(want, fmt.Sprintf(`{"responses":["%s"]}`, to.Name))
		}
	}
	out, err := s.Lab.ControlPlanes()[0].Exec(s.Context(), script.String())
	s.must(err)
	s.checkEqual("what pods hear from each other", want, operator.Lines(out))
}

// servicesAnswer requests the Service by address and by name from every pod.
func (s *scenario) servicesAnswer(pods map[string]corev1.Pod) {
	var service corev1.Service
	s.must(s.Object(s.Context(), &service, "service", "web"))
	// A restarted kube-proxy may fail to write its rules, and retries after half a minute.
	s.eventually("the Service answers at every node", time.Minute, s.portAnswers)
	for node, pod := range pods {
		for _, target := range []string{service.Spec.ClusterIP + ":80", "web.default.svc.cluster.local:80", "web:80"} {
			s.eventually("an answer of "+target+" to the pod on "+node, time.Minute, func(ctx context.Context) error {
				_, err := s.Kube(ctx, "exec", pod.Name, "--", "/agnhost", "connect", target, "--timeout=5s")
				return err
			})
		}
	}
}

// portAnswers returns nil when the Service answers at every node's port, from outside.
func (s *scenario) portAnswers(ctx context.Context) error {
	for _, host := range s.Members() {
		if out, err := s.Lab.Host("lb").Exec(ctx, "curl -fs -m 5 http://"+host.Address+":30080/hostname"); err != nil ||
			!strings.HasPrefix(out, "web-") {
			return fmt.Errorf("port 30080 of %s: %q, %w", host.Hostname, out, err)
		}
	}
	return nil
}

// logsAndExec uses each node's kubelet, and so its serving certificate.
func (s *scenario) logsAndExec(pods map[string]corev1.Pod) {
	for node, pod := range pods {
		if out, err := s.Kube(s.Context(), "logs", pod.Name); err != nil ||
			!strings.Contains(out, "Started HTTP server") {
			s.Errorf("logs on %s: %v\n%s", node, err, out)
		}
		if out, err := s.Kube(s.Context(), "exec", pod.Name, "--", "/agnhost", "--version"); err != nil ||
			!strings.Contains(out, "version") {
			s.Errorf("exec on %s: %v\n%s", node, err, out)
		}
	}
}

// dnsNeverRestarted waits for DNS pods on the host whose kubelet restarted last: it probes its pods again.
func (s *scenario) dnsNeverRestarted() {
	var list corev1.PodList
	s.eventually("cluster DNS is ready", time.Minute, func(ctx context.Context) error {
		list = corev1.PodList{}
		if err := s.Object(ctx, &list, "pods", "--namespace=kube-system", "-l", "k8s-app=kube-dns"); err != nil {
			return err
		}
		for _, pod := range list.Items {
			for _, c := range pod.Status.ContainerStatuses {
				if !c.Ready {
					return fmt.Errorf("%s is not ready", pod.Name)
				}
			}
		}
		return nil
	})
	s.checkEqual("CoreDNS pods", 2, len(list.Items))
	for _, pod := range list.Items {
		for _, c := range pod.Status.ContainerStatuses {
			s.checkEqual("restarts of "+pod.Name, 0, int(c.RestartCount))
		}
	}
}

// apiSurvivesEachHost pauses each control-plane host in turn. Reads and writes through the load balancer continue once
// etcd has elected another leader.
func (s *scenario) apiSurvivesEachHost() {
	for _, host := range s.Lab.ControlPlanes() {
		s.pauseDuring(func() {
			s.eventually("the API with "+host.Hostname+" paused", 30*time.Second, apiAnswers(s))
			s.eventually("a write with "+host.Hostname+" paused", 30*time.Second,
				writesObject(s, "without-"+host.Hostname))
		}, host)
		s.awaitHealthy()
	}
}
