//go:build e2e && long

package e2e

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// certificatesRenewed renews all certificates of kubeadm on every control-plane host: only their readers restart, and
// nothing is left to do. Then a certificate of one host is about to expire, and apply renews that host's.
func certificatesRenewed(s *scenario) {
	names := hostnamesOf(s.Lab.ControlPlanes())
	s.runCommand(0, []string{"certificates", "status"}, append([]string{"etcd/ca", "admin.conf"}, names...)...)
	before := s.readSerials()
	servers, others, err := s.containerIDs(s.Context())
	s.must(err)
	s.checkEqual("API servers, controller managers and schedulers", 3*len(names), len(servers))
	s.runCommand(2, []string{"certificates", "renew", "--all", "--dry-run"}, "renew the control plane certificates")
	s.runCommand(0, []string{"certificates", "renew", "--all", "-y"}, append([]string{"Done. "}, names...)...)
	for file, serial := range s.readSerials() {
		if isCA := strings.HasSuffix(file, "ca.crt"); (serial == before[file]) != isCA {
			s.Errorf("%s has the serial number %s, and had %s", file, serial, before[file])
		}
	}
	s.must(s.FetchKubeconfig(s.Context()))
	s.awaitHealthy()
	s.eventually("the control plane's pods have started again", time.Minute, func(ctx context.Context) error {
		now, rest, err := s.containerIDs(ctx)
		if err != nil {
			return err
		}
		for name, id := range servers {
			if now[name] == "" || now[name] == id {
				return fmt.Errorf("%s is %q", name, now[name])
			}
		}
		s.checkEqual("all other containers", others, rest)
		return nil
	})
	s.runCommand(0, []string{"certificates", "renew"}, "No changes.")
	emptyPlan(s)
	s.endsSoon(s.Lab.Host("cp-2"))
	s.runCommand(2, []string{"plan"}, "renew the control plane certificates", "front-proxy-client")
	s.checkEqual("hosts with steps", []string{"cp-2"}, s.plannedHosts())
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	emptyPlan(s)
}

// readSerials returns the serial numbers of the certificates of all control-plane hosts, by host and file.
func (s *scenario) readSerials() map[string]string {
	s.Helper()
	all, err := operator.OnEach(s.Context(), s.Lab.ControlPlanes(), `cd /etc/kubernetes
		for file in pki/*.crt pki/etcd/*.crt; do echo "$file $(base64 -w 0 $file)"; done
		for file in admin.conf controller-manager.conf scheduler.conf; do
			echo "$file $(sed -n 's/^ *client-certificate-data: //p' $file)"
		done`)
	s.must(err)
	out := map[string]string{}
	for host, text := range all {
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			file, encoded, _ := strings.Cut(line, " ")
			content, err := base64.StdEncoding.DecodeString(encoded)
			s.must(err)
			certificate, err := x509.ParseCertificate(s.decodePEM(file, content))
			s.must(err)
			out[host+" "+file] = certificate.SerialNumber.String()
		}
	}
	if want := 13 * len(all); len(out) != want { // 7 certificates, 3 CAs, 3 kubeconfigs
		s.Fatalf("want %d files, got %v", want, out)
	}
	return out
}

// decodePEM returns the first block of a PEM file.
func (s *scenario) decodePEM(file string, content []byte) []byte {
	s.Helper()
	block, _ := pem.Decode(content)
	if block == nil {
		s.Fatalf("%s is no PEM", file)
	}
	return block.Bytes
}

// containerIDs returns the IDs of all running containers by pod and name: of API servers, controller managers and
// schedulers, and of all others.
func (s *scenario) containerIDs(ctx context.Context) (servers, others map[string]string, err error) {
	var pods corev1.PodList
	if err := s.Object(ctx, &pods, "pods", "-A"); err != nil {
		return nil, nil, err
	}
	servers, others = map[string]string{}, map[string]string{}
	again := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	for _, pod := range pods.Items {
		into := others
		if slices.Contains(again, pod.Labels["component"]) {
			into = servers
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil {
				into[pod.Namespace+"/"+pod.Name+"/"+c.Name] = c.ContainerID
			}
		}
	}
	return servers, others, nil
}

// endsSoon gives a host a front-proxy certificate with 60 of 365 days left.
func (s *scenario) endsSoon(host *fleet.Host) {
	s.Helper()
	const pki = "/etc/kubernetes/pki/"
	decoded := func(file string) []byte {
		text, err := host.Exec(s.Context(), "cat "+pki+file)
		s.must(err)
		return s.decodePEM(file, []byte(text))
	}
	authority, err := x509.ParseCertificate(decoded("front-proxy-ca.crt"))
	s.must(err)
	key, err := x509.ParsePKCS1PrivateKey(decoded("front-proxy-ca.key"))
	s.must(err)
	template, err := x509.ParseCertificate(decoded("front-proxy-client.crt"))
	s.must(err)
	template.NotAfter = time.Now().AddDate(0, 0, 60)
	template.NotBefore = template.NotAfter.AddDate(-1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, authority, template.PublicKey, key)
	s.must(err)
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s.breakHost(host, "echo "+text+" | base64 -d >"+pki+"front-proxy-client.crt")
}
