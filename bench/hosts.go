package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/manifest"
	"kubeone/internal/testutil/sshtest"
)

// simulatedHosts is the argument that makes this program simulate hosts.
const simulatedHosts = "simulated-hosts"

// simulatedControlPlane is the number of control-plane hosts.
const simulatedControlPlane = 5

// serveHosts simulates hosts on loopback addresses until stdin ends. It writes a manifest of them and its key to the
// folder, and prints the manifest's path when it accepts connections.
func serveHosts(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("%s FOLDER HOSTS", simulatedHosts)
	}
	dir := args[0]
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	fleet := &answering{ready: make(chan struct{})}
	server, err := sshtest.New(sshtest.Options{
		AllLoopback: true,
		RTT:         roundTrip,
		Handler:     fleet.answerProbe,
		Dial:        noTunnel,
	})
	if err != nil {
		return err
	}
	defer server.Close()
	path := filepath.Join(dir, "kubeone.yaml")
	if err := errors.Join(writeKey(filepath.Join(dir, "id_ed25519")),
		os.WriteFile(path, fleetManifest(server, count), 0o644)); err != nil {
		return err
	}
	loaded, err := manifest.Load(ctx, manifest.Options{ManifestPath: path})
	if err != nil {
		return err
	}
	if err := fleet.prepareAnswers(loaded.Cluster); err != nil {
		return err
	}
	fmt.Fprintln(stdout, path)
	_, err = io.Copy(io.Discard, stdin)
	return err
}

// noTunnel refuses tunnels: the simulated hosts have no API.
func noTunnel(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no API is simulated")
}

// writeKey creates the operator's key.
func writeKey(path string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}

// loopbackAddress returns the address of host n.
func loopbackAddress(n int) string { return net.IPv4(127, 1, byte(n>>8), byte(n)).String() }

// hostName returns the name of host n.
func hostName(n int) string { return fmt.Sprintf("node-%05d", n) }

// fleetManifest lists all hosts, control planes first.
func fleetManifest(server *sshtest.Server, count int) []byte {
	var text strings.Builder
	text.WriteString(`apiVersion: kubeone.k8c.io/v1beta2
kind: KubeOneCluster
name: fleet
versions: {kubernetes: "` + simulatedVersion + `"}
apiEndpoint: {host: 127.2.0.1}
cloudProvider: {none: {}}
clusterNetwork: {podSubnet: 10.128.0.0/10, cni: {flannel: {}}, kubeProxy: {nftables: {}}}
features: {metricsServer: {enable: false}, nodeLocalDNS: {deploy: false}}
controlPlane:
  hosts:
`)
	key := base64.StdEncoding.EncodeToString(server.HostKey().Marshal())
	for n := range count {
		if n == simulatedControlPlane {
			text.WriteString("staticWorkers:\n  hosts:\n")
		}
		fmt.Fprintf(&text, "    - {publicAddress: %s, hostname: %s, sshPort: %d, sshPrivateKeyFile: id_ed25519, "+
			"sshHostPublicKey: %s}\n",
			loopbackAddress(n), hostName(n), server.Port(), key)
	}
	return []byte(text.String())
}

// answering answers the probe for every host.
type answering struct {
	once    sync.Once
	ready   chan struct{} // closed by prepare
	answers map[string]canned
}

// answerProbe is the server's handler. The dialled address identifies the host.
func (a *answering) answerProbe(s *sshtest.Session) int {
	<-a.ready
	if _, err := io.Copy(io.Discard, s.Stdin); err != nil {
		return 1
	}
	address, _, err := net.SplitHostPort(s.LocalAddr.String())
	if err != nil {
		return 1
	}
	host, ok := a.answers[address]
	if !ok {
		return 1
	}
	if err := host.writeAnswer(s.Stdout); err != nil {
		return 1
	}
	return 0
}
