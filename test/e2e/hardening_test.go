//go:build e2e && long

package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestHardening enables and disables the baseline in a cluster in use. Then a new cluster has the baseline by default
// and keeps it through an upgrade.
func TestHardening(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "hardening", ControlPlanes: 3, Workers: 2, SSHUser: "ops", KubernetesVersion: olderMinor,
	})
	s.bare = s.snapshotAll()
	s.runParts(
		part{"a cluster is made without the baseline", func(s *scenario) {
			s.must(s.WriteManifest(setHardening("none")))
			installPlain(s)
			s.checkNoBaseline()
			s.nothingToDo()
		}},
		part{"a cluster without it stays without", func(s *scenario) { s.applyWithoutHardening(s.checkNoBaseline) }},
		part{"a living cluster gets the baseline", baselineComes},
		part{"with a manifest that says nothing, it stays",
			func(s *scenario) { s.applyWithoutHardening(s.checkBaseline) }},
		part{"the baseline goes again", func(s *scenario) {
			s.must(s.WriteManifest(setHardening("none")))
			s.runCommand(2, []string{"plan"}, "reconfigure")
			s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
			s.awaitHealthy()
			s.checkNoBaseline()
			s.nothingToDo()
		}},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
		part{"a new cluster has the baseline", func(s *scenario) {
			s.must(s.WriteManifest())
			installPlain(s)
			s.checkBaseline()
			s.auditLog()
			s.nothingToDo()
		}},
		part{"an upgrade keeps it", func(s *scenario) {
			s.must(s.Want(s.Context(), newest))
			s.upgradePlanned(olderMinor, newest)
			s.runCommand(0, []string{"upgrade", "-y"}, "Done.")
			s.checkUpgraded(newest)
			s.checkBaseline()
			emptyPlan(s)
		}},
	)
}

// setHardening sets the field in the manifest.
func setHardening(value string) operator.Edit {
	return editFields(func(all map[string]any) { all["hardening"] = value })
}

// baselineComes enables the baseline under load, which must not notice.
func baselineComes(s *scenario) {
	s.must(s.WriteManifest(setHardening("baseline")))
	under := s.startLoad()
	s.runCommand(2, []string{"plan"}, "reconfigure components, hardening and kubelet")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.endLoad(under)
	s.awaitHealthy()
	s.checkBaseline()
	s.nothingToDo()
}

// applyWithoutHardening applies a manifest without the hardening field: no container restarts, and the cluster stays as
// it was.
func (s *scenario) applyWithoutHardening(as func()) {
	s.Helper()
	before := s.listProcesses()
	s.must(s.WriteManifest())
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.nothingToDo()
	s.checkEqual("components, and since when they run", before, s.listProcesses())
	as()
}

// listProcesses returns the components of each host with their start times.
func (s *scenario) listProcesses() map[string]string {
	s.Helper()
	all, err := operator.OnEach(s.Context(), s.Members(), "for name in kubelet containerd etcd kube-apiserver "+
		"kube-controller kube-scheduler; do for pid in $(pgrep -x $name); do echo $name $pid "+
		"$(cut -d' ' -f22 /proc/$pid/stat); done; done")
	s.must(err)
	return all
}

// requestAnonymously requests a path from an API server anonymously, and returns the status.
func (s *scenario) requestAnonymously(host *fleet.Host, path string) string {
	s.Helper()
	out, err := host.Exec(s.Context(), "curl -sk -m 5 -o /dev/null -w '%{http_code}' https://127.0.0.1:6443"+path)
	s.must(err)
	return strings.TrimSpace(out)
}

// checkNoBaseline checks that the cluster has nothing of the baseline.
func (s *scenario) checkNoBaseline() {
	s.Helper()
	for _, host := range s.Members() {
		f := s.readFacts(host)
		for _, name := range []string{"seccompDefault", "podPidsLimit", "tlsMinVersion"} {
			if value, set := f.kubelet[name]; set && value != nil {
				s.Errorf("%s: the kubelet has %s: %v", host.Hostname, name, value)
			}
		}
		if f.args["kube-apiserver"] == nil {
			continue
		}
		for _, flag := range []string{"tls-min-version", "audit-log-path", "authentication-config"} {
			if value, set := f.args["kube-apiserver"][flag]; set {
				s.Errorf("%s: the API server has --%s=%s", host.Hostname, flag, value)
			}
		}
		s.checkEqual("the anonymous status of /version on "+host.Hostname, "200",
			s.requestAnonymously(host, "/version"))
	}
}

// checkBaseline checks that the cluster has the baseline: every automatic check of the benchmark, and the limits of
// anonymous requests.
func (s *scenario) checkBaseline() {
	s.Helper()
	warned := map[string]string{}
	for _, host := range s.Members() {
		f := s.readFacts(host)
		control := f.args["kube-apiserver"] != nil
		s.checkEqual("control plane of "+host.Hostname, slices.Contains(s.Lab.ControlPlanes(), host), control)
		for _, c := range slices.Concat(controlPlaneFiles(), apiServerChecks(), controllerChecks(), etcdChecks(),
			nodeChecks()) {
			if c.control && !control {
				continue
			}
			why := c.fails(f)
			switch {
			case why != "" && c.warns == "":
				s.Errorf("%s: %s FAIL: %s", host.Hostname, c.id, why)
			case why == "" && c.warns != "":
				s.Errorf("%s: %s passes, and is in the table as a warning", host.Hostname, c.id)
			case why != "":
				warned[c.id] = c.warns
			}
		}
		if control {
			for path, status := range map[string]string{"/livez": "200", "/readyz": "200", "/healthz": "200",
				"/version": "401", "/api/v1/namespaces/kube-public/configmaps/cluster-info": "401"} {
				s.checkEqual("the anonymous status of "+path+" on "+host.Hostname, status,
					s.requestAnonymously(host, path))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(warned)) {
		s.Logf("%s WARN: %s", id, warned[id])
	}
	s.checkEqual("how much the record says", "baseline",
		s.runKubectl("-n", "kube-system", "get", "configmap", "kubeone", "-o", "jsonpath={.data.hardening}"))
}

// auditLog checks that the log contains requests but not their content.
func (s *scenario) auditLog() {
	const secret = "bm90LWluLWFueS1sb2c="
	s.runKubectl("create", "secret", "generic", "audited", "--from-literal=key="+secret)
	s.runKubectl("get", "secret", "audited", "-o", "yaml")
	const log = "/var/log/kubernetes/audit/audit.log"
	found := false
	for _, host := range s.Lab.ControlPlanes() {
		out, err := host.Exec(s.Context(), "stat -c '%a %U' "+log+" && grep -c '\"level\":\"Metadata\"' "+log)
		s.must(err)
		if !strings.HasPrefix(out, "600 root\n") {
			s.Errorf("%s: the audit log: %s", host.Hostname, out)
		}
		s.breakHost(host, "! grep -q -e '"+secret+"' -e '\"requestObject\"' -e '\"responseObject\"' "+log)
		out, err = host.Exec(s.Context(), "grep -c '/secrets/audited' "+log+" || :")
		s.must(err)
		found = found || strings.TrimSpace(out) != "0"
	}
	if !found {
		s.Error("no audit log has the request for the Secret")
	}
	s.eventually("all nodes Ready", time.Minute, allReady(s))
}
