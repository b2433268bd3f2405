package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

// simulatedVersion is the Kubernetes version of the simulated hosts.
const simulatedVersion = "1.36.3"

// canned is the answer to the probe of a healthy, complete member of the cluster that needs no change.
type canned struct{ facts string }

// writeAnswer prints the answer; only the clock differs between calls.
func (c canned) writeAnswer(w io.Writer) error {
	now := time.Now()
	clock := fmt.Sprintf("clock\t%d.%09d\n", now.Unix(), now.Nanosecond())
	_, err := io.WriteString(w, "kubeone-probe\t1\n"+clock+c.facts+clock+"end\t1\n")
	return err
}

// prepareAnswers makes the answers of all hosts and starts to serve them.
func (a *answering) prepareAnswers(want desired.Cluster) error {
	parts, err := partsOf(want)
	if err != nil {
		return err
	}
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	a.answers = map[string]canned{}
	for _, h := range want.Hosts() {
		a.answers[h.PublicAddress] = canned{renderFacts(want, h, parts, certificate)}
	}
	a.once.Do(func() { close(a.ready) })
	return nil
}

// partsOf returns the names of the hosts' programs and images.
func partsOf(want desired.Cluster) (desired.Artifacts, error) {
	a, err := release.Names(release.Want{
		KubernetesVersion: want.KubernetesVersion,
		Arch:              "amd64",
		CNI:               want.Network.CNI.Name,
		KubeProxy:         true,
	})
	if err != nil {
		return a, err
	}
	v, err := release.VersionsFor(want.KubernetesVersion)
	for name, version := range map[string]string{
		desired.BinaryKubelet: want.KubernetesVersion, desired.BinaryKubeadm: want.KubernetesVersion,
		desired.BinaryKubectl:    want.KubernetesVersion,
		desired.BinaryContainerd: v.Containerd, desired.BinaryRunc: v.Runc,
	} {
		a.Binaries = append(a.Binaries, desired.Binary{Name: name, Version: version})
	}
	return a, err
}

// renderFacts returns what internal/probe/script.sh prints between its clocks.
func renderFacts(want desired.Cluster, h desired.Host, parts desired.Artifacts, certificate string) string {
	var f factWriter
	f.putMachine(h)
	f.putFiles(want, h)
	certificates := []string{"/etc/kubernetes/pki/ca.crt", "/var/lib/kubelet/pki/kubelet-client-current.pem"}
	components := []string{"kubelet"}
	if h.Role == desired.ControlPlane {
		certificates = append(certificates, "/etc/kubernetes/pki/apiserver.crt", "/etc/kubernetes/pki/etcd/ca.crt",
			"/etc/kubernetes/pki/etcd/server.crt")
		components = append(components, "apiserver", "controller-manager", "scheduler", "etcd")
		f.controlPlane(want, parts)
	}
	for _, path := range certificates {
		f.putValues("pem", "==> "+path+" <==", certificate)
	}
	f.putValues("yaml", fmt.Sprintf("/etc/kubernetes/kubelet.conf:    server: https://%s:6443", h.PrivateAddress))
	f.putValues("address",
		fmt.Sprintf(`2: eth0    inet %s/16 brd 127.1.255.255 scope global eth0\       valid_lft forever `+
			`preferred_lft forever`, h.PrivateAddress))
	for _, c := range components {
		f.putValues("health", c+" 200")
	}
	f.putPrograms(parts)
	return f.text.String()
}

// factWriter writes lines of a name, a tab and a value.
type factWriter struct{ text strings.Builder }

// putValues writes the values under one name; a value may have several lines.
func (f *factWriter) putValues(name string, values ...string) {
	for _, value := range values {
		for line := range strings.SplitSeq(strings.TrimSuffix(value, "\n"), "\n") {
			f.text.WriteString(name + "\t" + line + "\n")
		}
	}
}

func (f *factWriter) putMachine(h desired.Host) {
	id := sha256.Sum256([]byte(h.Hostname))
	f.putValues("uid", "0")
	f.putValues("uname", "6.1.0-28-amd64 x86_64")
	f.putValues("cpus", "8")
	f.putValues("hostname", h.Hostname)
	f.putValues("machine-id", hex.EncodeToString(id[:16]))
	f.putValues("boot-id", hex.EncodeToString(id[16:]))
	f.putValues("memory", "MemTotal:       24684096 kB")
	f.putValues("swap", "")
	f.putValues("disk", "Filesystem     1024-blocks     Used Available Capacity Mounted on",
		"/dev/vda         264212084 31257480  64243784      33% /var")
	f.putValues("file", `/etc/os-release:ID=debian`, `/etc/os-release:VERSION_ID="12"`,
		`/etc/os-release:PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"`)
}

func (f *factWriter) putFiles(want desired.Cluster, h desired.Host) {
	f.putValues("exists", "/etc/kubernetes/kubelet.conf", "/etc/kubeone/marker")
	f.putValues("absent", "/var/lib/kubeone/lock/owner")
	f.putValues("file", "/etc/kubeone/marker:cluster="+want.Name, "/etc/kubeone/marker:role="+string(h.Role),
		"/etc/kubeone/marker:run=bench", "/etc/kubeone/marker:complete=yes")
	digests := componentconfig.Digests(want, h)[h.ID]
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		f.putValues("file", "/etc/kubeone/digests:"+name+" "+digests[name])
	}
}

func (f *factWriter) controlPlane(want desired.Cluster, parts desired.Artifacts) {
	f.putValues("exists", "/etc/kubernetes/admin.conf", "/etc/kubernetes/pki/ca.key", "/var/lib/etcd/member")
	f.putValues("yaml", fmt.Sprintf("/etc/kubernetes/admin.conf:    server: https://%s:6443", want.Endpoint.Host))
	for _, c := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		path := "/etc/kubernetes/manifests/" + c + ".yaml"
		f.putValues("manifest", path)
		for _, i := range parts.Images {
			if strings.Contains(i.Name, "/"+c+":") {
				f.putValues("pod", path+":    image: "+i.Name)
			}
		}
	}
	f.putValues("pod", "/etc/kubernetes/manifests/kube-apiserver.yaml:    - --secure-port=6443")
	for _, port := range []string{"2379", "2380", "6443", "10250", "10257", "10259"} {
		f.putValues("listen", "LISTEN 0      4096               *:"+port+"            *:*")
	}
}

func (f *factWriter) putPrograms(parts desired.Artifacts) {
	for _, unit := range []string{"containerd", "kubelet"} {
		path := "/opt/kubeone/bin/" + unit
		f.putValues("unit", fmt.Sprintf("ExecStart={ path=%s ; argv[]=%s ; ignore_errors=no ; pid=0 ; "+
			"code=(null) ; status=0/0 }", path, path),
			"Id="+unit+".service", "LoadState=loaded", "ActiveState=active", "SubState=running",
			"UnitFileState=enabled", "ActiveEnterTimestampMonotonic=1906707541", "")
	}
	f.putValues("unit", "Id=kubeone-step.service", "LoadState=not-found", "ActiveState=inactive", "SubState=dead",
		"UnitFileState=", "ActiveEnterTimestampMonotonic=0")
	f.putValues("link", "total 0")
	for _, b := range parts.Binaries {
		f.putValues("link", fmt.Sprintf("lrwxrwxrwx 1 root root 38 Jan  2 10:00 %s -> /opt/kubeone/%s/%s/%s", b.Name,
			b.Name,
			b.Version, b.Name))
	}
}

// selfSigned returns a certificate that is valid for another year; it stands for all of a host's certificates.
func selfSigned() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return text.String(), err
}
