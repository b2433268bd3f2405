//go:build e2e && long

package e2e

import (
	"slices"
	"strings"
	"time"

	"kubeone/internal/plan/step"
)

// dnsFrom sets the repository of the cluster DNS image.
func dnsFrom(repository string) func(all map[string]any) {
	return func(all map[string]any) {
		setFeatures(all, map[string]any{"coreDNS": map[string]any{"imageRepository": repository}})
	}
}

// dnsImage returns the image in the Deployment of cluster DNS.
func (s *scenario) dnsImage() string {
	s.Helper()
	return s.runKubectl("-n", "kube-system", "get", "deployment", "coredns", "-o",
		"jsonpath={.spec.template.spec.containers[0].image}")
}

// dnsElsewhere uses repositories that do not exist: hosts must have the image from the bundle before pods use it.
func dnsElsewhere(s *scenario) {
	first := s.dnsImage()
	tag := first[strings.LastIndex(first, ":"):]
	s.must(s.WriteManifest(editFields(dnsFrom("registry.example.com/dns:v1"))))
	s.runCommand(15, []string{"plan"}, "features.coreDNS.imageRepository: contains a tag")
	s.must(s.WriteManifest(editFields(dnsFrom("registry.example.com/dns"))))
	s.checkEqual("hosts that get the image", hostnamesOf(s.Members()), s.fetchingHosts())
	s.dnsRuns("registry.example.com/dns/coredns" + tag)
	s.must(s.WriteManifest(editFields(dnsFrom("other.example.com:5000"))))
	s.dnsRuns("other.example.com:5000/coredns" + tag)
	s.must(s.WriteManifest())
	s.dnsRuns(first)
	for _, h := range s.Members() {
		s.breakHost(h, "! grep -q '^dns-image ' /etc/kubeone/digests")
	}
}

// fetchingHosts returns the sorted names of the hosts that get images in a plan.
func (s *scenario) fetchingHosts() []string {
	s.Helper()
	p, err := s.Plan(s.Context())
	s.must(err)
	var out []string
	for _, of := range p.Steps {
		if of.Intent.Kind == step.Fetch {
			out = append(out, p.Hosts[of.Host])
		}
	}
	slices.Sort(out)
	return out
}

// dnsRuns applies, and checks that every host has the image, every DNS server runs it, and kubeadm's configuration
// names it.
func (s *scenario) dnsRuns(image string) {
	s.Helper()
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.checkEqual("the image of cluster DNS", image, s.dnsImage())
	for _, h := range s.Members() {
		s.breakHost(h, "/opt/kubeone/bin/ctr -n k8s.io images ls -q | grep -qxF "+image)
	}
	s.runKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	s.eventually("nothing to do", time.Minute, s.planIsEmpty)
	repository := image[:strings.LastIndex(image, "/")]
	if config := s.runKubectl("-n", "kube-system", "get", "configmap", "kubeadm-config", "-o",
		"jsonpath={.data.ClusterConfiguration}"); !strings.Contains(config, "\n  imageRepository: "+repository+"\n") {
		s.Errorf("kubeadm would take cluster DNS from elsewhere than %s:\n%s", repository, config)
	}
	s.awaitHealthy()
}
