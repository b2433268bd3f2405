//go:build e2e && long

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubeone/internal/apply"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/ec2"
	"kubeone/test/lab/fleet"
)

// TestExternalCloud is the life of a cluster whose Nodes the cloud controller manager of AWS initializes. The API of
// the cloud is a fake. There is no storage driver.
func TestExternalCloud(t *testing.T) {
	t.Parallel()
	s := newScenario(t, fleet.Options{Name: "cloud", ControlPlanes: 1, Workers: 1})
	s.bare = s.snapshotAll()
	c := &externalCloud{first: ec2.Key{ID: "AKIAFIRST", Secret: "t0p-s3cret-of-the-cloud"},
		second: ec2.Key{ID: "AKIASECOND", Secret: "an0ther-s3cret-of-the-cloud"}}
	c.start(s)
	s.runParts(
		part{"a bundle is created with chart and image of the controller manager", c.createBundle},
		part{"Nodes wait for the controller manager", c.nodesWait},
		part{"Nodes get IDs, zones and types from the cloud", c.nodesInitialized},
		part{"what runs in the cluster works", workloadRuns},
		part{"another key is planned, used, and shown nowhere", c.keyChanged},
		part{"a deleted DaemonSet is found and applied again", c.managerRepaired},
		part{"a release of the manifest takes the place of the storage driver", c.driverReplaced},
		part{"the Node of a terminated instance is removed", c.instanceTerminated},
		part{"the cluster ends, and leaves nothing on its hosts", resetCluster},
	)
}

const (
	cloudManager    = "aws-cloud-controller-manager"
	cloudDriver     = "aws-ebs-csi-driver"
	cloudRegion     = "eu-central-1"
	uninitialized   = "node.cloudprovider.kubernetes.io/uninitialized"
	managerRegistry = "registry.k8s.io"
)

// externalCloud is the cloud of a lab, and the keys of its operator.
type externalCloud struct {
	*ec2.Server
	config        string // cloudConfig
	first, second ec2.Key
}

// zoneOf returns the zone of a host.
func zoneOf(host *fleet.Host) string {
	if host.Role == fleet.ControlPlane {
		return cloudRegion + "a"
	}
	return cloudRegion + "b"
}

func instanceOf(host *fleet.Host) string { return "i-" + strings.ReplaceAll(host.Hostname, "-", "") }

// start serves the cloud where the hosts reach it, and writes the manifest and the credentials file.
func (c *externalCloud) start(s *scenario) {
	s.Helper()
	var instances []ec2.Instance
	for _, host := range s.Members() {
		instances = append(instances, ec2.Instance{
			ID: instanceOf(host), Name: host.Hostname, Address: host.Address, Zone: zoneOf(host), Type: "t3.medium",
			State: "running", Tags: map[string]string{"kubernetes.io/cluster/" + s.Lab.Name: "owned"},
		})
	}
	zones := map[string]string{cloudRegion + "a": "euc1-az2", cloudRegion + "b": "euc1-az3"}
	c.Server = ec2.NewServer(cloudRegion, zones, c.first, instances...)
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", net.JoinHostPort(s.addressOf("1"), "0"))
	s.must(err)
	server := &httptest.Server{
		Listener: listener, Config: &http.Server{Handler: c.Server, ReadHeaderTimeout: time.Minute},
	}
	server.Start()
	s.Cleanup(server.Close)
	for _, service := range []string{"EC2", "ec2imds"} {
		c.config += fmt.Sprintf("[ServiceOverride %q]\nService=%s\nRegion=%s\nURL=%s\nSigningRegion=%s\nSigningName=ec2\n",
			service, service, cloudRegion, server.URL, cloudRegion)
	}
	c.writeCloud(s, false)
	s.Credentials = filepath.Join(s.TempDir(), "credentials.yaml")
	c.writeKey(s, c.first)
}

// writeCloud writes the manifest, with the storage driver of the cloud or without, and with these Helm releases.
func (c *externalCloud) writeCloud(s *scenario, storage bool, releases ...any) {
	s.Helper()
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		all["cloudProvider"] = map[string]any{
			"aws": map[string]any{}, "external": true, "disableBundledCSIDrivers": !storage, "cloudConfig": c.config,
		}
		all["helmReleases"] = releases
	})))
}

// writeKey writes the credentials file.
func (c *externalCloud) writeKey(s *scenario, key ec2.Key) {
	s.Helper()
	text := fmt.Sprintf("AWS_ACCESS_KEY_ID: %s\nAWS_SECRET_ACCESS_KEY: %s\n", key.ID, key.Secret)
	s.must(os.WriteFile(s.Credentials, []byte(text), 0o600))
}

// createBundle creates a bundle for the manifest, with chart and image from their official locations.
func (c *externalCloud) createBundle(s *scenario) {
	cache, err := components.DefaultCache()
	s.must(err)
	builder := components.NewBuilder(cache, s.Logf)
	set, err := builder.Build(s.Context(), s.Lab.KubernetesVersion)
	s.must(err)
	manager, err := builder.CloudAWS(s.Context())
	s.must(err)
	mirror, err := components.NewMirror(set, manager)
	s.must(err)
	address, stop, err := mirror.Listen(s.Context(), "127.0.0.1:0")
	s.must(err)
	defer func() { s.must(stop()) }()
	s.Environment = s.officialLocations(mirror)
	path := filepath.Join(s.Dir, "cloud.tar")
	s.runCommand(0, []string{"bundle", "create", "-f", path, "--mirror", "http://" + address, "--overwrite-registry",
		address, "--insecure-mirror", "--trust-source", "--arch", runtime.GOARCH}, "1 chart")
	s.Environment, s.Bundle = nil, path
	s.runCommand(0, []string{"bundle", "inspect", "--verify", path}, cloudManager,
		managerRegistry+"/provider-aws/cloud-controller-manager")
}

// officialLocations serves the repository of the chart and the registry of the image behind a proxy. It returns the
// environment of a command that uses the proxy and trusts its certificate.
func (s *scenario) officialLocations(mirror http.Handler) []string {
	s.Helper()
	repository, _, _ := strings.Cut(components.CloudAWSRepository, "/")
	authority := s.newAuthority("official")
	official := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == repository {
			r.URL.Path = "/" + repository + r.URL.Path
		}
		mirror.ServeHTTP(w, r)
	}))
	official.TLS = &tls.Config{
		Certificates: []tls.Certificate{*authority.newCertificate(s, repository, managerRegistry)},
		MinVersion:   tls.VersionTLS12,
	}
	official.StartTLS()
	s.Cleanup(official.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "want CONNECT", http.StatusMethodNotAllowed)
			return
		}
		forwardConnection(s.Context(), w, official.Listener.Addr().String())
	}))
	s.Cleanup(proxy.Close)
	file := filepath.Join(s.TempDir(), "authority.pem")
	s.must(os.WriteFile(file, []byte(authority.bundlePEM()), 0o600))
	return []string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + file}
}

// forwardConnection connects the client of a proxy to an address until one of them ends the connection.
func forwardConnection(ctx context.Context, w http.ResponseWriter, address string) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	w.WriteHeader(http.StatusOK)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	go func() {
		_, _ = io.Copy(server, buffered)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// nodesWait kills the program before it installs the controller manager.
func (c *externalCloud) nodesWait(s *scenario) {
	i, err := s.ApplyInterrupted(s.Context(), operator.Failure{
		Way: operator.Kill, Moment: operator.Moment{Event: apply.StepStarted, Step: "addon/cloud-credentials"},
	})
	s.must(err)
	if len(i.At) != 1 || i.Status != -1 {
		s.Fatalf("want the run killed before the controller manager\n%s", i.Result)
	}
	s.must(s.FetchKubeconfig(s.Context()))
	nodes, err := s.Nodes(s.Context())
	s.must(err)
	if len(nodes) == 0 {
		s.Fatal("there are no Nodes")
	}
	for name, node := range nodes {
		if !hasTaint(node, uninitialized) || node.Spec.ProviderID != "" {
			s.Errorf("%s: provider ID %q, taints %v", name, node.Spec.ProviderID, node.Spec.Taints)
		}
		flags, err := s.Lab.Host(name).Exec(s.Context(), "tr '\\0' ' ' </proc/$(pidof kubelet)/cmdline")
		s.must(err)
		if !strings.Contains(flags, "--cloud-provider=external") {
			s.Errorf("%s: the kubelet runs as %s", name, flags)
		}
	}
	s.checkEqual("calls to the cloud", 0, c.Calls("DescribeInstances"))
}

func hasTaint(node corev1.Node, key string) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}

func (c *externalCloud) nodesInitialized(s *scenario) {
	installPlain(s)
	nodes, err := s.Nodes(s.Context())
	s.must(err)
	for _, host := range s.Members() {
		s.must(c.checkNode(host, nodes[host.Hostname]))
	}
	s.runKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s")
	s.servingCertificates()
	if c.Calls("metadata") == 0 || c.Calls("DescribeAvailabilityZones") == 0 {
		s.Error("the controller manager did not ask the cloud")
	}
	s.checkEqual("requests that the cloud does not know", []string(nil), c.Problems())
	emptyPlan(s)
	bundle := s.Bundle
	s.Bundle = "" // no repository answers
	s.nothingToDo()
	s.Bundle = bundle
}

// checkNode returns an error unless the controller manager has initialized the Node of a host.
func (c *externalCloud) checkNode(host *fleet.Host, node corev1.Node) error {
	zone := zoneOf(host)
	want := map[string]string{
		"topology.kubernetes.io/region": cloudRegion, "topology.kubernetes.io/zone": zone,
		"node.kubernetes.io/instance-type": "t3.medium",
	}
	for key, value := range want {
		if node.Labels[key] != value {
			return fmt.Errorf("%s: label %s is %q, want %s", host.Hostname, key, node.Labels[key], value)
		}
	}
	if id := "aws:///" + zone + "/" + instanceOf(host); node.Spec.ProviderID != id {
		return fmt.Errorf("%s: provider ID %q, want %s", host.Hostname, node.Spec.ProviderID, id)
	}
	if hasTaint(node, uninitialized) {
		return fmt.Errorf("%s has the taint %s", host.Hostname, uninitialized)
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && address.Address == host.Address {
			return nil
		}
	}
	return fmt.Errorf("%s: addresses %v, want %s", host.Hostname, node.Status.Addresses, host.Address)
}

// keyChanged replaces the key in the cloud and in the credentials file. Pods read the new one after a restart.
func (c *externalCloud) keyChanged(s *scenario) {
	c.SetKey(c.second)
	c.writeKey(s, c.second)
	texts := s.runCommand(2, []string{"plan", "-v", "--diff"}, "addon cloud-credentials").Text()
	texts += s.runCommand(0, []string{"apply", "-y", "-v"}, "addon cloud-credentials", "Done.").Text()
	for _, key := range []ec2.Key{c.first, c.second} {
		if strings.Contains(texts, key.Secret) || strings.Contains(texts, key.ID) {
			s.Errorf("the key is printed:\n%s", texts)
		}
	}
	s.nothingToDo()
	before := c.Calls("DescribeInstances")
	s.runKubectl("-n", "kube-system", "rollout", "restart", "daemonset/"+cloudManager)
	s.runKubectl("-n", "kube-system", "rollout", "status", "daemonset/"+cloudManager, "--timeout=120s")
	s.eventually("a call with the new key", 2*time.Minute, func(context.Context) error {
		if c.Calls("DescribeInstances") == before {
			return fmt.Errorf("%d calls", before)
		}
		return nil
	})
	s.nothingToDo()
	s.checkNoSecrets(c.first.Secret, c.second.Secret)
}

func (c *externalCloud) managerRepaired(s *scenario) {
	s.runKubectl("-n", "kube-system", "delete", "daemonset", cloudManager)
	s.runCommand(2, []string{"plan"}, "DaemonSet kube-system/"+cloudManager)
	s.runCommand(0, []string{"apply", "-y"}, "Done.")
	s.runKubectl("-n", "kube-system", "rollout", "status", "daemonset/"+cloudManager, "--timeout=120s")
	emptyPlan(s)
}

// driverChart stands for a storage driver. No registry has its image.
func driverChart() map[string]string {
	return map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: " + cloudDriver + "\nversion: 1.0.0\n",
		"templates/driver.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: driver, image: "example.com/nowhere:1"}]}
`,
	}
}

// driverReplaced wants the storage driver, whose chart is missing, then a chart of the operator in its place. kubeone
// does not wait for pods of a release.
func (c *externalCloud) driverReplaced(s *scenario) {
	c.writeCloud(s, true)
	s.runCommand(2, []string{"plan"}, "no bundle contains chart "+cloudDriver)
	writeFiles(s, filepath.Join(filepath.Dir(s.Manifest), "charts", cloudDriver), driverChart())
	c.writeCloud(s, true, map[string]any{"chart": "./charts/" + cloudDriver, "namespace": "kube-system"})
	s.runCommand(0, []string{"apply", "-y"}, "install Helm release kube-system/"+cloudDriver, "Done.")
	s.nothingToDo()
	c.writeCloud(s, false)
	s.runCommand(0, []string{"apply", "-y"}, "uninstall Helm release kube-system/"+cloudDriver, "Done.")
	emptyPlan(s)
}

// instanceTerminated ends the worker's instance and starts it again. Only a Node that is not Ready is asked for.
func (c *externalCloud) instanceTerminated(s *scenario) {
	host := s.Lab.Host("worker-1")
	c.SetState(instanceOf(host), "terminated")
	_, err := host.Exec(s.Context(), "systemctl stop kubelet")
	s.must(err)
	s.eventually("the Node is removed", 3*time.Minute, func(ctx context.Context) error {
		nodes, err := s.Nodes(ctx)
		if _, found := nodes[host.Hostname]; err != nil || found {
			return fmt.Errorf("%s is a Node: %t, %w", host.Hostname, found, err)
		}
		return nil
	})
	c.SetState(instanceOf(host), "running")
	_, err = host.Exec(s.Context(), "systemctl start kubelet")
	s.must(err)
	s.runCommand(0, []string{"apply", "-y"}, "The cluster matches the manifest.")
	s.eventually("the Node is initialized again", time.Minute, func(ctx context.Context) error {
		nodes, err := s.Nodes(ctx)
		if err != nil {
			return err
		}
		return c.checkNode(host, nodes[host.Hostname])
	})
	s.awaitHealthy()
	s.checkEqual("requests that the cloud does not know", []string(nil), c.Problems())
	emptyPlan(s)
}
