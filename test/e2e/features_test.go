//go:build e2e && long

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/internal/plan/step"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestFeatures enables and disables features of the API server in a running cluster.
func TestFeatures(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "features", ControlPlanes: 3, Workers: 2, SSHUser: "ops"})
	s.bare = map[string][]string{}
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"features are switched on at once", featuresOn},
		part{"a policy that the API server refuses is taken back", policyRefused},
		part{"features are switched off", featuresOff},
		part{"cluster DNS takes its image from elsewhere, and back", dnsElsewhere},
		part{"cluster DNS that does not run is waited for, and named", dnsDown},
	)
}

const (
	auditLog    = "/var/log/kubernetes/audit.log"
	auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n" +
		"rules: [{level: Metadata}]\n"
	// refusedPolicy has the form of a policy, but with an invalid group: the API server does not start with it.
	refusedPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\n" +
		"rules:\n  - level: Metadata\n    resources: [{group: No_Group}]\n"
	// authentication has an issuer that does not answer. Only clients with its tokens have to wait.
	authentication = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n" +
		"anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}, {path: /healthz}]}\n" +
		"jwt:\n  - issuer: {url: \"https://127.0.0.1:9\", audiences: [kubernetes]}\n" +
		"    claimMappings: {username: {claim: sub, prefix: \"id:\"}}\n"
	nodeSelectors = "podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: \"\"\n  tenants: disk=ssd\n"
)

// writeBeside writes a file to the manifest's folder.
func (s *scenario) writeBeside(name, content string) {
	s.Helper()
	s.must(os.WriteFile(filepath.Join(filepath.Dir(s.Manifest), name), []byte(content), 0o600))
}

// setFeatures replaces the features of a manifest. The bundles of labs contain no images for addons, so those that new
// clusters get by default stay off.
func setFeatures(all map[string]any, features map[string]any) {
	features["metricsServer"] = map[string]any{"enable": false}
	features["nodeLocalDNS"] = map[string]any{"deploy": false}
	all["features"] = features
}

// enableFeatures enables an audit log, node selectors for namespaces, AlwaysPullImages, and a token issuer.
func enableFeatures(all map[string]any) {
	setFeatures(all, map[string]any{
		"staticAuditLog": map[string]any{"enable": true, "config": map[string]any{"policyFilePath": "policy.yaml"}},
		"podNodeSelector": map[string]any{
			"enable": true, "config": map[string]any{"configFilePath": "selectors.yaml"},
		},
		"alwaysPullImages": map[string]any{"enable": true},
		"authenticationConfiguration": map[string]any{
			"enable": true, "config": map[string]any{"configFilePath": "authentication.yaml"},
		},
	})
}

// featureFlags returns the API server flags of the features.
func featureFlags() []string {
	return []string{
		"--audit-log-path=" + auditLog, "--audit-policy-file=/etc/kubernetes/kubeone/kube-apiserver/audit-policy-",
		"--admission-control-config-file=/etc/kubernetes/kubeone/kube-apiserver/admission-",
		"--enable-admission-plugins=NodeRestriction,AlwaysPullImages,PodNodeSelector",
	}
}

// apiServerFlags returns the flags of a host's running API server.
func (s *scenario) apiServerFlags(h *fleet.Host) string {
	s.Helper()
	out, err := h.Exec(s.Context(), "tr '\\0' '\\n' </proc/$(pgrep -x kube-apiserver)/cmdline")
	s.must(err)
	return out
}

// reconfiguredHosts returns the names of the hosts that a plan reconfigures.
func (s *scenario) reconfiguredHosts() []string {
	s.Helper()
	p, err := s.Plan(s.Context())
	s.must(err)
	var out []string
	for _, of := range p.Steps {
		if of.Intent.Kind == step.Reconfigure {
			out = append(out, p.Hosts[of.Host])
		}
	}
	return out
}

func featuresOn(s *scenario) {
	s.writeBeside("policy.yaml", auditPolicy)
	s.writeBeside("selectors.yaml", nodeSelectors)
	s.writeBeside("authentication.yaml", authentication)
	s.must(s.WriteManifest(editFields(enableFeatures)))
	s.checkEqual("hosts that are reconfigured", hostnamesOf(s.Lab.ControlPlanes()), s.reconfiguredHosts())
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.runKubectl("create", "namespace", "tenants")
	s.runKubectl("annotate", "namespace", "tenants", "scheduler.alpha.kubernetes.io/node-selector=disk=ssd")
	s.runKubectl("-n", "tenants", "wait", "--for=create", "serviceaccount/default", "--timeout=1m")
	s.runKubectl("-n", "tenants", "run", "tenant", "--image", "example.com/nothing", "--image-pull-policy", "Never")
	s.checkEqual("the node selector and the pull policy of a tenant's pod", `{"disk":"ssd"} Always`,
		s.runKubectl("-n", "tenants", "get", "pod", "tenant", "-o",
			"jsonpath={.spec.nodeSelector} {.spec.containers[0].imagePullPolicy}"))
	for _, h := range s.Lab.ControlPlanes() {
		flags := s.apiServerFlags(h)
		for _, flag := range featureFlags() {
			if !strings.Contains(flags, flag) {
				s.Errorf("%s: no %s in\n%s", h.Hostname, flag, flags)
			}
		}
		s.breakHost(h, "grep -q '\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\"' "+auditLog)
		s.breakHost(h, "grep -q '127.0.0.1:9' $(sed -n 's/^ *- --authentication-config=//p' "+
			"/etc/kubernetes/manifests/kube-apiserver.yaml)")
		for path, status := range map[string]string{"/livez": "200", "/version": "401"} {
			s.breakHost(h, "[ \"$(curl -sk -o /dev/null -w '%{http_code}' https://127.0.0.1:6443"+path+")\" = "+
				status+" ]")
		}
		s.breakHost(h, "[ \"$(stat -c %a /etc/kubernetes/kubeone/kube-apiserver/* | sort -u)\" = 600 ]")
	}
	s.awaitHealthy()
	s.nothingToDo()
}

// policyRefused uses a policy with which no API server starts: the first host is rolled back, the others stay
// unchanged.
func policyRefused(s *scenario) {
	files := func() map[string]string {
		out, err := operator.OnEach(s.Context(), s.Members(),
			"cat /etc/kubernetes/manifests/*.yaml /etc/kubernetes/kubeone/*/* /etc/kubeone/digests 2>/dev/null | "+
				"sha256sum")
		s.must(err)
		return out
	}
	before := files()
	s.writeBeside("policy.yaml", refusedPolicy)
	s.runCommand(16, []string{"apply", "-y"}, "kube-apiserver does not start with its new settings",
		"this host has again what it had before")
	s.checkEqual("files of all hosts", before, files())
	s.awaitHealthy()
	s.writeBeside("policy.yaml", auditPolicy)
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
}

func featuresOff(s *scenario) {
	s.runKubectl("delete", "namespace", "tenants")
	s.must(s.WriteManifest())
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	for _, h := range s.Lab.ControlPlanes() {
		flags := s.apiServerFlags(h)
		for _, flag := range []string{
			"--audit-log-path=" + auditLog, "--admission-control-config-file", "AlwaysPullImages",
		} {
			if strings.Contains(flags, flag) {
				s.Errorf("%s: still %s in\n%s", h.Hostname, flag, flags)
			}
		}
		// The log stays, and the baseline's files of the API server.
		s.breakHost(h, "[ -s "+auditLog+" ] && cd /etc/kubernetes/kubeone/kube-apiserver && "+
			`[ "$(ls | sed 's/-[0-9a-f]*[.]yaml$//' | tr '\n' ' ')" = "audit-policy authentication " ]`)
	}
	s.awaitHealthy()
	s.nothingToDo()
}
