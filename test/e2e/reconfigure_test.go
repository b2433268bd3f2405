//go:build e2e

package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"kubeone/internal/plan/step"
	"kubeone/test/e2e/operator"
)

// changeSettings are the changes of reconfigured: kubelet and container runtime on all hosts, kubelet of one worker,
// and API server.
func changeSettings(all map[string]any) {
	all["kubeletConfig"] = map[string]any{"maxPods": 90, "systemReserved": map[string]any{"cpu": "50m"}}
	all["containerRuntime"] = map[string]any{"containerd": map[string]any{"registries": map[string]any{
		"registry.example.com": map[string]any{"mirrors": []any{"https://mirror.example.com"}},
	}}}
	all["controlPlaneComponents"] = map[string]any{
		"apiServer": map[string]any{"flags": map[string]any{"event-ttl": "2h0m0s"}},
	}
}

// reconfigureCluster changes settings of all hosts at once. Components with changed settings restart, host by host, and
// no others.
func reconfigureCluster(s *scenario) {
	s.must(s.WriteManifest(editFields(changeSettings)))
	before := s.listContainers()
	// Nothing else may restart, except a leader that cannot renew its Lease for ten seconds.
	others, err := operator.OnEach(s.Context(), s.Members(), "/opt/kubeone/bin/ctr -n k8s.io containers ls | grep -v "+
		"-e /kube-apiserver: -e /kube-controller-manager: -e /kube-scheduler: -e /pause:")
	s.must(err)
	p, err := s.Plan(s.Context())
	s.must(err)
	var hosts []string
	for _, of := range p.Steps {
		if of.Intent.Kind == step.Reconfigure {
			hosts = append(hosts, p.Hosts[of.Host])
		}
	}
	s.checkEqual("hosts that are reconfigured", hostnamesOf(s.Members()), hosts)
	s.runCommand(2, []string{"plan"}, "reconfigure components, containerd and kubelet",
		"reconfigure containerd and kubelet")
	s.runCommand(2, []string{"plan", "--diff"}, "Differences between live (-) and planned (+)",
		"+maxPods: 90",
		"+[host.\"https://mirror.example.com\"]", "+--event-ttl=2h0m0s", "+  cpu: 50m",
		"ConfigMap kube-system/kubeadm-config")
	s.runCommand(2, []string{"apply", "--dry-run", "--diff"}, "flags of kube-apiserver")
	done := s.runCommand(0, []string{"apply", "-y", "-v"}, "Done. The cluster matches the manifest.",
		"event-ttl=2h0m0s")
	s.settingsAre("90", "--event-ttl=2h0m0s", "mirror.example.com")
	after := s.listContainers()
	for _, h := range s.Members() {
		for line := range strings.Lines(before[h.Hostname]) {
			id, _, _ := strings.Cut(line, " ")
			if !strings.Contains(after[h.Hostname], line) && strings.Contains(others[h.Hostname], id) {
				s.Errorf("%s: a container was started anew: %s of\n%s\n%s", h.Hostname, line, others[h.Hostname], done)
			}
		}
	}
	s.nothingToDo()
}

// settingsAre checks the settings on hosts and in objects.
func (s *scenario) settingsAre(maxPods, flag, mirror string) {
	s.Helper()
	for _, h := range s.Members() {
		s.checkEqual("pods for which "+h.Hostname+" has room", maxPods,
			s.runKubectl("get", "node", h.Hostname, "-o", "jsonpath={.status.allocatable.pods}"))
		found, err := h.Exec(s.Context(), "cat /etc/containerd/certs.d/*/hosts.toml 2>/dev/null || :")
		s.must(err)
		if !strings.Contains(found, mirror) {
			s.Errorf("%s: no mirror %q in %q", h.Hostname, mirror, found)
		}
	}
	for _, h := range s.Lab.ControlPlanes() {
		if slices.Contains(s.Members(), h) {
			s.breakHost(h, "tr '\\0' '\\n' </proc/$(pgrep -x kube-apiserver)/cmdline | grep -qxF -e '"+flag+"'")
		}
	}
	for _, in := range [][2]string{{"kubeadm-config", strings.TrimPrefix(strings.Split(flag, "=")[0], "--")},
		{"kubelet-config", "maxPods: " + maxPods}} {
		text := s.runKubectl("-n", "kube-system", "get", "configmap", in[0], "-o", "yaml")
		if !strings.Contains(text, in[1]) {
			s.Errorf("ConfigMap %s does not say %q:\n%s", in[0], in[1], text)
		}
	}
}

// settingsRefused applies settings with which a component does not start, on the control plane and on a worker. The
// first host is rolled back, and no other host changes.
func settingsRefused(s *scenario) {
	files := func() map[string]string {
		out, err := operator.OnEach(s.Context(), s.Members(), "cat /var/lib/kubelet/config.yaml "+
			"/etc/kubernetes/manifests/*.yaml /etc/kubeone/digests /etc/kubeone/files 2>/dev/null | sort | sha256sum")
		s.must(err)
		return out
	}
	before := files()
	for _, c := range []struct {
		what, says string
		edit       func(all map[string]any)
	}{
		{"an API server's flag", "kube-apiserver says: Error: unknown flag: --no-such-flag", func(all map[string]any) {
			changeSettings(all)
			all["controlPlaneComponents"] = map[string]any{
				"apiServer": map[string]any{"flags": map[string]any{"no-such-flag": "true"}},
			}
		}},
		{"a worker's kubelet", "the kubelet does not start", func(all map[string]any) {
			changeSettings(all)
			worker := all["staticWorkers"].(map[string]any)["hosts"].([]any)[0].(map[string]any)
			worker["kubelet"] = map[string]any{"systemReserved": map[string]any{"cpu": "100000"}} // too much
		}},
	} {
		s.must(s.WriteManifest(editFields(c.edit)))
		began := time.Now()
		s.runCommand(16, []string{"apply", "-y"}, c.says, "this host has again what it had before")
		s.Logf("%5.1f s  until %s was refused and taken back", time.Since(began).Seconds(), c.what)
		s.checkEqual("files of all hosts", before, files())
		s.awaitHealthy()
	}
	s.must(s.WriteManifest(editFields(changeSettings)))
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}

// reconfiguredBack restores the former settings, through two failures of the operator's machine.
func reconfiguredBack(s *scenario) {
	s.must(s.WriteManifest())
	p, err := s.Plan(s.Context())
	s.must(err)
	for _, moment := range []operator.Moment{
		{Event: "step-started", Step: nthStepID(s, p, step.Reconfigure, 1)},
		{Event: "step-done", Step: nthStepID(s, p, step.Reconfigure, len(s.Lab.ControlPlanes()))},
	} {
		i, err := s.ApplyInterrupted(s.Context(), operator.Failure{Way: operator.Kill, Moment: moment})
		s.must(err)
		s.Logf("%5.1f s  killed at %s", i.Took.Seconds(), moment)
		if len(i.At) != 1 || i.Status != -1 {
			s.Errorf("want the run killed at %s\n%s", moment, i.Result)
		}
	}
	s.eventually("reconfigured", 5*time.Minute, func(ctx context.Context) error {
		if r := s.Run(ctx, "apply", "-y"); r.Status != 0 {
			return errors.New(r.String())
		}
		return nil
	})
	for _, h := range s.Members() {
		s.checkEqual("pods for which "+h.Hostname+" has room", "110",
			s.runKubectl("get", "node", h.Hostname, "-o", "jsonpath={.status.allocatable.pods}"))
		s.breakHost(h, "! grep -q -e 'cpu: 50m' -e '^maxPods: 90' /var/lib/kubelet/config.yaml")
	}
	s.awaitHealthy()
	s.nothingToDo()
}
