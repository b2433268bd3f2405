//go:build e2e && long

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestEndpointMoves moves the API to another address. All clients switch to it, every Node stays Ready, interrupted
// runs resume, and the old address works until it is dropped.
func TestEndpointMoves(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "endpoint", ControlPlanes: 3, Workers: 2})
	s.runParts(
		part{"bare hosts become a cluster", installPlain},
		part{"the endpoint moves", endpointMoves},
		part{"the former address is dropped", formerAddressDropped},
		part{"the endpoint moves away from an address that is gone", endpointIsGone},
	)
}

// The last bytes of additional addresses of the load balancer.
const (
	secondAddress = "250"
	thirdAddress  = "251"
)

// addAddress adds an address of the lab's network to the load balancer, and returns it.
func (s *scenario) addAddress(last string) string {
	s.Helper()
	own := s.Lab.Endpoint
	address := own[:strings.LastIndexByte(own, '.')+1] + last
	s.breakHost(s.loadBalancer(), "ip address add "+address+"/24 dev eth0")
	return address
}

// endpointAt changes the endpoint in the scenario's manifest.
func (s *scenario) endpointAt(address string) {
	s.Helper()
	s.wantEdited(editFields(func(all map[string]any) { all["apiEndpoint"] = map[string]any{"host": address} }))
}

func endpointMoves(s *scenario) {
	old, address := s.Lab.Endpoint, s.addAddress(secondAddress)
	worker := s.Lab.Host("worker-2")
	s.runCommand(4, []string{"apply", "-y", "--host", "worker-1", "-m", s.writeVariant(address)},
		"an endpoint change affects every host",
		"except for: apiEndpoint (the cluster still has "+old+":6443)")
	s.endpointAt("cp-2")
	s.runCommand(15, []string{"plan"}, "one of several control-plane hosts")
	s.endpointAt(address)
	ready := s.readyThroughout()
	s.runCommand(2, []string{"plan"}, "add "+address+" to the API server certificate",
		"dial "+address+":6443", "publish the endpoint "+address+":6443")
	// A worker that does not reach the new address keeps the old one. Until it does, the cluster's objects keep it too.
	s.breakHost(worker, "ip route add blackhole "+address)
	s.runCommand(16, []string{"apply", "-y"}, "does not find the API at https://"+address+":6443")
	s.checkEqual("what "+worker.Hostname+" dials", "https://"+old+":6443", s.readDialledServer(worker, "kubelet"))
	s.checkEqual("the cluster's endpoint", old+":6443", s.readPublishedEndpoint())
	s.breakHost(worker, "ip route del blackhole "+address)
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.movedTo(address)
	ready()
	s.nothingToDo()
	s.runCommand(0, []string{"plan"}, "still has "+old)
	for _, endpoint := range []string{old, address} {
		s.runKubectl("--server", "https://"+endpoint+":6443", "get", "nodes")
	}
}

// writeVariant returns a copy of the scenario's manifest with another endpoint.
func (s *scenario) writeVariant(address string) string {
	s.Helper()
	path, err := s.Variant("endpoint", editFields(func(all map[string]any) {
		all["apiEndpoint"] = map[string]any{"host": address}
	}))
	s.must(err)
	return path
}

// movedTo checks that all clients dial the address.
func (s *scenario) movedTo(address string) {
	s.Helper()
	url := "https://" + address + ":6443"
	s.must(s.FetchKubeconfig(s.Context())) // the operator's kubeconfig dials the new address, too
	for _, h := range s.Lab.Workers() {
		s.checkEqual("what "+h.Hostname+" dials", url, s.readDialledServer(h, "kubelet"))
	}
	for _, h := range s.Lab.ControlPlanes() {
		s.checkEqual("what the administrator on "+h.Hostname+" dials", url, s.readDialledServer(h, "admin"))
	}
	s.checkEqual("the cluster's endpoint", address+":6443", s.readPublishedEndpoint())
	s.checkEqual("what kube-proxy dials", url,
		serverIn(s.runKubectl("-n", "kube-system", "get", "configmap", "kube-proxy", "-o",
			`jsonpath={.data.kubeconfig\.conf}`)))
	s.checkEqual("what hosts that join dial", url,
		serverIn(s.runKubectl("-n", "kube-public", "get", "configmap", "cluster-info",
			"-o", `jsonpath={.data.kubeconfig}`)))
}

func (s *scenario) readPublishedEndpoint() string {
	s.Helper()
	config := s.runKubectl("-n", "kube-system", "get", "configmap", "kubeadm-config", "-o",
		"jsonpath={.data.ClusterConfiguration}")
	for line := range strings.SplitSeq(config, "\n") {
		if value, ok := strings.CutPrefix(line, "controlPlaneEndpoint: "); ok {
			return value
		}
	}
	return ""
}

// readDialledServer returns the server in a kubeconfig of a host.
func (s *scenario) readDialledServer(h *fleet.Host, name string) string {
	s.Helper()
	text, err := h.Exec(s.Context(), "cat /etc/kubernetes/"+name+".conf")
	s.must(err)
	return serverIn(text)
}

func serverIn(kubeconfig string) string {
	for line := range strings.SplitSeq(kubeconfig, "\n") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "server: "); ok {
			return value
		}
	}
	return ""
}

// readyThroughout watches the Nodes. The returned function ends that, and fails the test for each Node that was not
// Ready at some time.
func (s *scenario) readyThroughout() (end func()) {
	s.Helper()
	client, err := s.Client("")
	s.must(err)
	ctx, cancel := context.WithCancel(s.Context())
	looks, unready, done := 0, map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				continue // counted below
			}
			looks++
			for _, n := range nodes.Items {
				if !operator.Ready(n) {
					unready[n.Name] = true
				}
			}
		}
	}()
	return func() {
		s.Helper()
		cancel()
		<-done
		if looks < 5 {
			s.Errorf("the Nodes were seen %d times only", looks)
		}
		for name := range unready {
			s.Errorf("%s was not Ready at some time", name)
		}
	}
}

func formerAddressDropped(s *scenario) {
	old := s.Lab.Endpoint
	s.pauseDuring(func() {
		s.runCommand(15, []string{"plan", "--drop-old-names"}, "keep their old names because of worker-1")
	}, s.Lab.Host("worker-1"))
	s.eventually("worker-1 is back", time.Minute, s.planIsEmpty)
	s.runCommand(2, []string{"plan", "--drop-old-names"}, "remove "+old+" from the API server certificate")
	s.runCommand(0, []string{"apply", "-y", "--drop-old-names"}, "Done. The cluster matches the manifest.")
	s.nothingToDo()
	if text := s.Run(s.Context(), "plan").Text(); strings.Contains(text, "still has") {
		s.Errorf("names are left:\n%s", text)
	}
	for _, h := range s.Lab.ControlPlanes() {
		names, err := h.Exec(s.Context(), "/opt/kubeone/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf "+
			"--server https://127.0.0.1:6443 --tls-server-name "+old+" get --raw /readyz 2>&1 || true")
		s.must(err)
		if !strings.Contains(names, "certificate") {
			s.Errorf("%s still answers to %s: %s", h.Hostname, old, names)
		}
	}
	s.awaitHealthy()
}

// endpointIsGone moves away from an address that no longer exists: workers reach no API, and their kubelets report
// nothing.
func endpointIsGone(s *scenario) {
	former, address := s.addressOf(secondAddress), s.addAddress(thirdAddress)
	s.breakHost(s.loadBalancer(), "ip address del "+former+"/24 dev eth0")
	s.eventually("the workers are not Ready", 3*time.Minute, func(ctx context.Context) error {
		return s.planSays("worker-1: state of its Node is unknown", "worker-2: state of its Node is unknown")(ctx)
	})
	s.endpointAt(address)
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.movedTo(address)
	s.awaitHealthy()
	s.nothingToDo()
}

func (s *scenario) addressOf(last string) string {
	return s.Lab.Endpoint[:strings.LastIndexByte(s.Lab.Endpoint, '.')+1] + last
}
