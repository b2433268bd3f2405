//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// liveObjects edits objects of apply and kubeadm by hand: kubeone reports and restores them, and keeps additional
// objects.
func liveObjects(s *scenario) {
	for _, by := range [][]string{
		{"-n", "kube-flannel", "delete", "daemonset", "kube-flannel-ds"},
		{"-n", "kube-flannel", "patch", "configmap", "kube-flannel-cfg", "--type", "merge", "-p",
			`{"data":{"net-conf.json":"{}"},"metadata":{"labels":{"somebodys":"own"}}}`},
		{"-n", "kube-system", "scale", "deployment", "coredns", "--replicas", "0"},
		{"-n", "kube-system", "delete", "serviceaccount", "coredns"},
		{"-n", "kube-system", "patch", "daemonset", "kube-proxy", "--type", "merge", "-p",
			`{"spec":{"template":{"spec":{"nodeSelector":{"no":"where"}}}}}`},
	} {
		s.runKubectl(by...)
	}
	s.setProxyMode("iptables")
	says := []string{
		"DaemonSet kube-flannel/kube-flannel-ds is missing",
		"ConfigMap kube-flannel/kube-flannel-cfg differs in data.net-conf.json",
		"ServiceAccount kube-system/coredns is missing",
		"Deployment kube-system/coredns differs in spec.replicas",
		"DaemonSet kube-system/kube-proxy differs in spec.template.spec.nodeSelector",
		"ConfigMap kube-system/kube-proxy differs in mode",
	}
	s.eventually("no pod of what was taken away is left", 3*time.Minute, func(ctx context.Context) error {
		left, err := s.Kube(ctx, "get", "pods", "-A", "-l", "k8s-app in (flannel,kube-dns,kube-proxy)", "-o", "name")
		if err == nil && left != "" {
			err = errors.New(left)
		}
		return err
	})
	s.runCommand(3, []string{"status"}, append(says, "flannel is not running on", "kube-proxy is not running on",
		"cluster DNS is not running on any Node")...)
	s.runCommand(2, []string{"plan"}, says...)
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.nothingToDo()
	s.awaitHealthy()
	s.checkEqual("the additional label", "own",
		s.runKubectl("-n", "kube-flannel", "get", "configmap", "kube-flannel-cfg",
			"-o", "jsonpath={.metadata.labels.somebodys}"))
	s.checkEqual("kube-proxy's mode", "nftables", s.proxyMode())
	s.notCompared()
	s.servingCertificate()
	s.endpointSilent()
	s.runKubectl("-n", "kube-system", "delete", "lease", "kubeone")
	s.runCommand(0, []string{"status"}, "is healthy: 3 control-plane hosts, 2 workers")
	s.nothingToDo()
	s.runCommand(0, []string{"apply", "-y"}, "No changes")
}

// endpointSilent stops the load balancer: API servers behind it that answer do not prove that clients reach them.
func (s *scenario) endpointSilent() {
	s.Helper()
	balancer := s.loadBalancer()
	s.breakHost(balancer, "systemctl stop haproxy")
	s.runCommand(3, []string{"status"}, "the endpoint does not answer: from", "connection refused")
	s.breakHost(balancer, "systemctl start haproxy") // workers' kubelets report through it
	s.awaitHealthy()
	s.breakHost(balancer, "systemctl stop haproxy")
	s.runCommand(0, []string{"plan"}, "No changes", "no API server answers at the API endpoint "+s.Lab.Endpoint+":6443")
	s.breakHost(balancer, "systemctl start haproxy")
	s.runCommand(0, []string{"status"})
}

func (s *scenario) loadBalancer() *fleet.Host {
	s.Helper()
	for _, h := range s.Lab.Hosts {
		if h.Role == fleet.LoadBalancer {
			return h
		}
	}
	s.Fatal("the lab has no load balancer")
	return nil
}

// servingCertificate has a kubelet request a new serving certificate when no approver runs.
func (s *scenario) servingCertificate() {
	s.Helper()
	worker := s.Lab.Host("worker-1")
	const certificate = "/var/lib/kubelet/pki/kubelet-server-current.pem"
	s.breakHost(worker, "rm "+certificate+" && systemctl restart kubelet")
	s.eventually("the kubelet waits for a certificate", 3*time.Minute, func(context.Context) error {
		r := s.Run(s.Context(), "plan")
		if r.Status != 2 || !strings.Contains(r.Text(), "kubelets wait for them: worker-1") {
			return errors.New(r.String())
		}
		return nil
	})
	s.runCommand(0, []string{"status"}, "1 certificate request pending", "serving certificates (worker-1)")
	s.runCommand(0, []string{"apply", "-y"}, "approve serving certificates", "Done. The cluster matches the manifest.")
	s.eventually("the kubelet has its certificate", 3*time.Minute, func(ctx context.Context) error {
		_, err := worker.Exec(ctx, "test -s "+certificate)
		return err
	})
	s.nothingToDo()
}

// editedFiles edits and deletes files on hosts: kubeone reports and restores them without restarting a container. An
// additional flag of a static pod is reported and kept, and then the cluster does not simply match.
func editedFiles(s *scenario) {
	const pod, checkFlag, edit = "/etc/kubernetes/manifests/kube-scheduler.yaml", "--v=1", "echo '# somebody was here' >>"
	const setIDs = pod + " (--v)" // the difference, without the value
	edits := []struct{ host, file, by string }{
		{"cp-2", "/etc/systemd/system/kubelet.service", edit},
		{"cp-3", "/var/lib/kubelet/config.yaml", edit},
		{"worker-1", "/etc/containerd/config.toml", edit},
		{"worker-2", "/var/lib/kubelet/config.yaml", "rm "},
		{"worker-2", "/etc/systemd/system/containerd.service", "rm "},
	}
	var says []string
	before := map[string]string{}
	sum := func(host, file string) string {
		out, err := s.Lab.Host(host).Exec(s.Context(), "sha256sum "+file+"; stat -c %a "+file)
		s.must(err)
		return out
	}
	s.breakHost(s.Lab.Host("cp-2"), "cp -p "+pod+" /root/kept && cp -p "+pod+" /root/edited && "+
		"sed -i 's|^    - kube-scheduler$|&\\n    - "+checkFlag+"|' /root/edited && mv /root/edited "+pod)
	s.schedulerHas("cp-2", checkFlag, 1)
	added := sum("cp-2", pod)
	for _, e := range edits {
		before[e.host+e.file] = sum(e.host, e.file)
		s.breakHost(s.Lab.Host(e.host), e.by+e.file)
	}
	s.breakHost(s.Lab.Host("worker-2"), "systemctl stop kubelet && systemctl daemon-reload") // it could not start again
	for _, e := range edits[:3] {
		says = append(says, e.host+": changed outside kubeone: "+e.file)
	}
	says = append(says, "cp-2: changed outside kubeone: "+setIDs)
	containers := s.listContainers()
	s.runCommand(3, []string{"status"}, says...)
	s.runCommand(2, []string{"plan"}, append(says, "restore edited files", "/var/lib/kubelet/config.yaml")...)
	s.runCommand(4, []string{"apply", "-y"}, "cp-2 "+pod+" (edited)")
	for _, e := range edits {
		s.checkEqual(e.file+" of "+e.host, before[e.host+e.file], sum(e.host, e.file))
	}
	s.checkEqual("the static pod with the flag", added, sum("cp-2", pod))
	s.checkEqual("the containers that run", containers, s.listContainers())
	s.schedulerHas("cp-2", checkFlag, 1)
	s.awaitHealthy()
	s.runCommand(0, []string{"status"}, "cp-2: changed outside kubeone: "+setIDs)
	s.runCommand(4, []string{"plan"}, "No changes. The cluster matches the manifest, except for: cp-2 "+pod+" (edited)")
	stops := "an upgrade would overwrite manual changes to static pods: cp-2: " + setIDs
	s.runCommand(10, []string{"plan", "--force-upgrade"}, stops, "--discard-edits")
	s.runCommand(10, []string{"upgrade", "--force", "-y"}, stops)
	s.checkEqual("the containers that run", containers, s.listContainers())
	s.checkEqual("the static pod with the flag", added, sum("cp-2", pod))
	s.runCommand(2, []string{"plan", "--force-upgrade", "--discard-edits"},
		"cp-2: its upgrade overwrites edits of "+setIDs)
	s.breakHost(s.Lab.Host("cp-2"), "mv /root/kept "+pod)
	s.schedulerHas("cp-2", checkFlag, 0)
	s.nothingToDo()
}

// schedulerHas waits until the host's scheduler is healthy and has the flag that many times.
func (s *scenario) schedulerHas(host, flag string, times int) {
	s.Helper()
	look := fmt.Sprintf(`pid=$(pgrep -x kube-scheduler) && args=$(tr '\0' '\n' </proc/$pid/cmdline) &&
		[ "$(printf '%%s\n' "$args" | grep -cxF -e '%s')" = %d ] && curl -sfk -m 3 https://127.0.0.1:10259/healthz`,
		flag, times)
	s.eventually("a healthy scheduler of "+host, 2*time.Minute, func(ctx context.Context) error {
		_, err := s.Lab.Host(host).Exec(ctx, look)
		return err
	})
}

// listContainers returns the running tasks of each host, with their processes (operator.Tasks).
func (s *scenario) listContainers() map[string]string {
	s.Helper()
	tasks, err := operator.OnEach(s.Context(), s.Members(), operator.Tasks)
	s.must(err)
	for host := range tasks {
		tasks[host] = strings.TrimSpace(tasks[host]) + "\n" // every line ends alike
	}
	return tasks
}

// notCompared has the API refuse a dry run: kubeone reports that, and does not take it for a match.
func (s *scenario) notCompared() {
	s.Helper()
	const webhook = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: refuses-everything
webhooks:
- name: refuses.everything.example
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 1
  clientConfig:
    url: https://127.0.0.1:1/nobody
  rules:
  - apiGroups: [apps]
    apiVersions: [v1]
    operations: [CREATE, UPDATE]
    resources: [daemonsets]
  namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: kube-flannel
`
	file := filepath.Join(s.Dir, "webhook.yaml")
	s.must(os.WriteFile(file, []byte(webhook), 0o600))
	s.runKubectl("apply", "-f", file)
	s.eventually("the webhook refuses", time.Minute, func(context.Context) error {
		r := s.Run(s.Context(), "plan")
		if r.Status != 4 {
			return errors.New(r.String())
		}
		return nil
	})
	says := []string{"except for: flannel (could not be compared)", "refuses.everything.example"}
	s.runCommand(4, []string{"plan"}, says...)
	s.runCommand(4, []string{"apply", "-y", "--allow-unsupported"}, says...)
	s.runCommand(3, []string{"status"}, "flannel could not be compared")
	s.runKubectl("delete", "-f", file)
	s.eventually("the webhook is gone", time.Minute, func(context.Context) error {
		if r := s.Run(s.Context(), "plan"); r.Status != 0 {
			return errors.New(r.String())
		}
		return nil
	})
}

// runKubectl runs kubectl and returns what it printed.
func (s *scenario) runKubectl(args ...string) string {
	s.Helper()
	out, err := s.Kube(s.Context(), args...)
	s.must(err)
	return strings.TrimSpace(out)
}

// proxyMode returns the mode in kube-proxy's live configuration.
func (s *scenario) proxyMode() string {
	s.Helper()
	for line := range strings.Lines(s.runKubectl("-n", "kube-system", "get", "configmap", "kube-proxy", "-o",
		`jsonpath={.data.config\.conf}`)) {
		if mode, ok := strings.CutPrefix(line, "mode: "); ok {
			return strings.TrimSpace(mode)
		}
	}
	return ""
}

// setProxyMode changes the mode in kube-proxy's live configuration like kubectl edit.
func (s *scenario) setProxyMode(mode string) {
	s.Helper()
	live := s.runKubectl("-n", "kube-system", "get", "configmap", "kube-proxy", "-o", "yaml")
	changed := strings.Replace(live, "mode: "+s.proxyMode(), "mode: "+mode, 1)
	_, err := s.Feed(s.Context(), changed, "replace", "-f", "-")
	s.must(err)
}
