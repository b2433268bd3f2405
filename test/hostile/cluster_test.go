package hostile

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/componentconfig"
	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
	"kubeone/internal/probe"
	"kubeone/internal/testutil/etcdtest"
	"kubeone/internal/testutil/sshtest"
)

// machine is one fake host. Its SSH server listens at a loopback address, but it reports another address.
type machine struct {
	name, at, address string
	controlPlane      bool
	bare              bool // nothing is installed
}

// clusterMachines returns the cluster's hosts. cp-4, w-1 and w-4 are about to join.
func clusterMachines() []machine {
	return []machine{
		{name: "cp-1", at: "127.0.3.11", address: "10.0.0.11", controlPlane: true},
		{name: "cp-2", at: "127.0.3.12", address: "10.0.0.12", controlPlane: true},
		{name: "cp-3", at: "127.0.3.13", address: "10.0.0.13", controlPlane: true},
		{name: "cp-4", at: "127.0.3.14", address: "10.0.0.14", controlPlane: true, bare: true},
		{name: "w-1", at: "127.0.3.21", address: "10.0.0.21", bare: true},
		{name: "w-2", at: "127.0.3.22", address: "10.0.0.22"},
		{name: "w-3", at: "127.0.3.23", address: "10.0.0.23"},
		{name: "w-4", at: "127.0.3.24", address: "10.0.0.24", bare: true},
	}
}

// machinesOutsideManifest returns the members outside the manifest: the host of a Machine, one that was joined by hand,
// and a control-plane host. They are healthy. Only the controllers connect to one of them, the Machine's host.
func machinesOutsideManifest() []machine {
	return []machine{
		{name: "pool-1", at: "127.0.3.31", address: "10.0.1.1"},
		{name: "hand-1", address: "10.0.1.2"},
		{name: "cp-9", address: "10.0.0.19", controlPlane: true},
	}
}

// role is a role of the attacker. Each role takes the place of one of the machines.
type role string

const (
	worker       role = "worker"
	firstContact role = "first contact"
	controlPlane role = "control plane, not approved"
	poolHost     role = "host of a Machine"
)

func (r role) seatName() string {
	return map[role]string{worker: "w-2", firstContact: "w-4", controlPlane: "cp-4", poolHost: "pool-1"}[r]
}

// presentMachines returns the machines that the program connects to: the hosts of the manifest, or the Machine's host
// alone.
func (r role) presentMachines() []machine {
	if r == poolHost {
		return []machine{r.findMachine()}
	}
	return slices.DeleteFunc(clusterMachines(), func(m machine) bool {
		return m.name == "w-4" && r != firstContact || m.name == "cp-4" && r != controlPlane
	})
}

func (r role) findMachine() machine {
	all := append(clusterMachines(), machinesOutsideManifest()...)
	return all[slices.IndexFunc(all, func(m machine) bool { return m.name == r.seatName() })]
}

const (
	endpointHost    = "127.0.3.100"
	alternativeName = "api.demo.example.com"
	version         = "1.36.3"
)

// cluster answers for all honest hosts: it has real SSH servers, and a fake API and etcd behind those of the control
// plane.
type cluster struct {
	hosts *sshtest.Server
	key   sshtest.Key
	api   *api
	etcd  *etcdtest.Cluster
	runs  string // version of all components
	want  desired.Cluster
	// stopped is the name of an honest host whose kubelet does not run, empty for none.
	stopped string
	sums    map[string]map[string]string // digests of the desired configuration by host ID
}

func newCluster(t *testing.T, runs string, change func(objects)) *cluster {
	t.Helper()
	c := &cluster{key: sshtest.WriteKey(t, ""), runs: runs, want: desiredCluster(worker)}
	c.configureHosts(manifestText(worker))
	c.etcd = etcdtest.Start(t, &etcdtest.Cluster{Members: []etcdtest.Member{
		{ID: 1, Name: "cp-1", Leader: 1}, {ID: 2, Name: "cp-2", Leader: 1}, {ID: 3, Name: "cp-3", Leader: 1},
		{ID: 9, Name: "cp-9", Leader: 1},
	}})
	c.hosts = sshtest.Start(t, sshtest.Options{
		AllLoopback: true, AuthorizedKeys: []ssh.PublicKey{c.key.Public()}, Handler: c.answerCommand, Dial: c.dialTunnel,
	})
	objects := c.objectsOf(t)
	if change != nil {
		change(objects)
	}
	c.api = newAPI(t, objects)
	return c
}

// configureHosts gives the hosts the configuration of a manifest. Do not call it during a probe.
func (c *cluster) configureHosts(manifest string) {
	want := loadManifest(manifest)
	c.sums = componentconfig.Digests(want, append(want.Hosts(), machineHost())...)
}

// dialTunnel connects tunnels of the control plane.
func (c *cluster) dialTunnel(ctx context.Context, network, addr string) (net.Conn, error) {
	switch {
	case strings.HasSuffix(addr, ":6443"):
		addr = c.api.Listener.Addr().String()
	case addr == "127.0.0.1:2379":
		addr = c.etcd.Access().Via[0].Address
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// answerCommand handles commands to honest hosts: it answers the probe, and refuses everything else.
func (c *cluster) answerCommand(s *sshtest.Session) int {
	at, _, _ := net.SplitHostPort(s.LocalAddr.String())
	all := clusterMachines()
	i := slices.IndexFunc(all, func(m machine) bool { return m.at == at })
	text, err := scriptOf(s)
	if err != nil || i < 0 || !bytes.HasPrefix(text, []byte(probe.Script)) {
		_, _ = io.WriteString(s.Stderr, "this host is asked, and not changed\n")
		return 99
	}
	lines := c.honestAnswer(all[i])
	if all[i].name == c.stopped {
		lines = append(lines, kubeletStopped()...)
	}
	if all[i].controlPlane && asksForCredentials(s) {
		lines = append(lines, c.credentialLines()...)
	}
	_, _ = io.WriteString(s.Stdout, frameAnswer(lines))
	return 0
}

// kubeletStopped returns the additional lines of a host whose kubelet does not run.
func kubeletStopped() []string {
	return []string{
		"unit\t", "unit\tId=kubelet.service", "unit\tLoadState=loaded", "unit\tActiveState=failed",
		"unit\tSubState=failed", "unit\t",
	}
}

// scriptOf reads the script of a command, with the length that the command gives.
func scriptOf(s *sshtest.Session) ([]byte, error) {
	_, size, _ := strings.Cut(s.Command, "dd bs=")
	size, _, _ = strings.Cut(size, " ")
	length, err := strconv.Atoi(size)
	if err != nil {
		return nil, err
	}
	text := make([]byte, length)
	n, err := io.ReadFull(s.Stdin, text)
	return text[:n], err
}

func asksForCredentials(s *sshtest.Session) bool {
	return strings.Contains(s.Command+" ", " credentials ")
}

// frameAnswer frames a host's lines.
func frameAnswer(lines []string) string {
	return "kubeone-probe\t1\n" + strings.Join(lines, "\n") + "\nend\t1\n"
}

// honestAnswer returns the answer of a healthy machine: recorded answers of real hosts, with current names, addresses
// and clock.
func (c *cluster) honestAnswer(m machine) []string {
	file := "worker"
	switch {
	case m.bare:
		file = "empty"
	case m.controlPlane:
		file = "control-plane"
	}
	recorded, err := os.ReadFile("../../internal/probe/testdata/" + file + ".txt")
	if err != nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(string(recorded)) {
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, "\t")
		switch {
		case name == "kubeone-probe", name == "end", name == "pem", name == "clock",
			strings.HasPrefix(value, "/etc/kubeone/digests"), strings.HasPrefix(value, "/etc/kubernetes/admin.conf:"):
			continue
		case name == "hostname":
			line = "hostname\t" + m.name
		case name == "machine-id":
			line = "machine-id\t" + machineID(m.address)
		case name == "address" && strings.Contains(value, "eth0"):
			line = fmt.Sprintf("address\t2: eth0    inet %s/24 brd 10.0.0.255 scope global eth0", m.address)
		}
		line = strings.ReplaceAll(line, "https://10.0.0.11:", "https://"+m.address+":")
		line = strings.ReplaceAll(line, "https://10.0.0.10:", "https://"+endpointHost+":")
		lines = append(lines, strings.ReplaceAll(line, version, c.runs))
	}
	lines = append(lines, fmt.Sprintf("clock\t%f", float64(time.Now().UnixNano())/1e9))
	if m.bare {
		return lines
	}
	id, derived := c.hostID(m.name), "yes"
	if id == machineUID {
		derived = "no"
		lines = append(lines, "file\t/etc/kubeone/marker:machine="+machineName)
	}
	lines = append(lines, "file\t/etc/kubeone/marker:id="+id, "file\t/etc/kubeone/marker:id-derived="+derived,
		"file\t/etc/kubeone/marker:node="+m.name)
	for name, sum := range c.sums[id] {
		lines = append(lines, "file\t/etc/kubeone/digests:"+name+" "+sum)
	}
	return append(lines, certificateLines("/etc/kubernetes/pki/ca.crt", c.api.caCertificate())...)
}

func machineID(address string) string {
	return fmt.Sprintf("%032x", []byte(net.ParseIP(address).To4()))
}

// hostID returns the ID of the host with that name.
func (c *cluster) hostID(name string) string { return idIn(c.want, name) }

func idIn(want desired.Cluster, name string) string {
	if name == poolHost.seatName() {
		return machineUID
	}
	for _, m := range clusterMachines() {
		if h, ok := want.Host(m.at); ok && m.name == name {
			return h.ID
		}
	}
	return ""
}

// certificateLines returns a certificate in the form of an answer.
func certificateLines(path string, content []byte) []string {
	lines := []string{"pem\t==> " + path + " <=="}
	for line := range strings.Lines(string(content)) {
		lines = append(lines, "pem\t"+strings.TrimSpace(line))
	}
	return lines
}

// credentialLines returns the additional lines of a control-plane host when credentials are requested.
func (c *cluster) credentialLines() []string {
	creds := c.etcd.Access().Credentials
	lines := certificateLines("/etc/kubernetes/pki/etcd/ca.crt", creds.CA)
	lines = append(lines, certificateLines("/etc/kubernetes/pki/apiserver-etcd-client.crt", creds.Cert)...)
	lines = append(lines, secretLines("/etc/kubernetes/admin.conf", c.api.adminKubeconfig())...)
	lines = append(lines, secretLines("/etc/kubernetes/pki/apiserver-etcd-client.key", string(creds.Key))...)
	return append(lines, "access\t1")
}

// secretLines returns a credentials file in the form of an answer.
func secretLines(path, content string) []string {
	lines := []string{"block\tsecret", "==> " + path + " <=="}
	lines = append(lines, strings.Split(strings.TrimSuffix(content, "\n"), "\n")...)
	return append(lines, "block\t")
}

// secretTexts returns everything that an attacker must not learn.
func (c *cluster) secretTexts() []string {
	creds := c.etcd.Access().Credentials
	return []string{token, string(creds.Key), "PRIVATE KEY", base64.StdEncoding.EncodeToString(creds.Key)}
}

// manifestText returns the manifest. It has no hostnames, so that hosts name themselves.
func manifestText(r role) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kubeone.k8c.io/v1beta2\nkind: KubeOneCluster\nname: demo\n"+
		"features:\n  metricsServer: {enable: false}\n  nodeLocalDNS: {deploy: false}\nversions:\n"+
		"  kubernetes: %s\ncloudProvider:\n  none: {}\napiEndpoint:\n  host: %s\n"+
		"  alternativeNames: [%s]\nclusterNetwork:\n  cni:\n"+
		"    flannel: {}\ncontrolPlane:\n  hosts:\n", version, endpointHost, alternativeName)
	all := r.presentMachines()
	slices.SortStableFunc(all, func(x, y machine) int { return rankOf(x) - rankOf(y) })
	for i, m := range all {
		if !m.controlPlane && (i == 0 || all[i-1].controlPlane) {
			b.WriteString("staticWorkers:\n  hosts:\n")
		}
		fmt.Fprintf(&b, "    - publicAddress: %s\n      privateAddress: %s\n      sshUsername: root\n", m.at, m.address)
	}
	return b.String()
}

func rankOf(m machine) int {
	if m.controlPlane {
		return 0
	}
	return 1
}

// machineHost returns the Machine's host as the controllers want it (internal/machines/provider/ssh/site.go).
func machineHost() desired.Host {
	m := poolHost.findMachine()
	return desired.Host{
		ID: machineUID, HasOwnID: true, Machine: machineName, Role: desired.Worker, Hostname: m.name,
		PublicAddress: m.at, PrivateAddress: m.address, Labels: map[string]string{desired.OwnerLabel: machineUID},
		Versions: desired.Versions{Kubernetes: version},
	}
}

// desiredCluster returns the cluster of the manifest. For the controllers it has only the Machine's host.
func desiredCluster(r role) desired.Cluster {
	if r == poolHost {
		c := desiredCluster(worker)
		c.ControlPlane, c.Workers = nil, []desired.Host{machineHost()}
		return c
	}
	return loadManifest(manifestText(r))
}

// loadManifest returns the cluster of a test manifest.
func loadManifest(text string) desired.Cluster {
	l, err := manifest.Load(context.Background(), manifest.Options{
		ManifestPath: "kubeone.yaml", ManifestReader: strings.NewReader(text),
	})
	if err != nil {
		panic(err) // the tests' own manifest is valid
	}
	return l.Cluster
}

// otherCA is the certificate of an unknown authority.
var otherCA = pemOf(selfSigned().Certificate[0])

// pemOf encodes a DER certificate as PEM.
func pemOf(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) }
