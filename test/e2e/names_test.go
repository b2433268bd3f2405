//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/test/lab/fleet"
)

// domain is the domain of the host names, in an unusual but valid spelling.
const domain = ".Lab.Example.com."

// TestHostsGivenByName reaches hosts by names. The operator's SSH configuration resolves them, so that no resolver is
// needed.
func TestHostsGivenByName(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "names", ControlPlanes: 1, Workers: 1})
	s.runParts(
		part{"a host given by a name alone is refused, and nothing is changed", nameAlone},
		part{"hosts given by names become a cluster, whose certificates have the names", namedHosts},
		part{"a changed file mode is reported and repaired", modesRepaired},
	)
}

// byName gives every host a name as its address. With alone, it gives no other address.
func byName(alone bool) func(all map[string]any) {
	return func(all map[string]any) {
		for _, list := range []string{"controlPlane", "staticWorkers"} {
			for _, entry := range all[list].(map[string]any)["hosts"].([]any) {
				host := entry.(map[string]any)
				host["publicAddress"] = strings.ToUpper(host["hostname"].(string)) + domain
				if alone {
					delete(host, "privateAddress")
				}
			}
		}
		endpoint, _ := all["apiEndpoint"].(map[string]any)
		if endpoint == nil {
			endpoint = map[string]any{}
		}
		endpoint["alternativeNames"] = []string{"API" + domain, "*.Lab.Example.com"}
		all["apiEndpoint"] = endpoint
	}
}

func nameAlone(s *scenario) {
	before := s.snapshotAll()
	wrong, err := s.Variant("name-alone", editFields(byName(true)))
	s.must(err)
	s.runCommand(15, []string{"apply", "-y", "-m", wrong}, "name-alone.yaml:", `"cp-1.lab.example.com" is a DNS name`,
		"set privateAddress to the IP address of the host")
	s.checkUnchanged(before, s.snapshotAll())
}

func namedHosts(s *scenario) {
	home := filepath.Join(s.Dir, "home") // until the end of the scenario
	s.must(os.MkdirAll(filepath.Join(home, ".ssh"), 0o700))
	var config strings.Builder
	for _, host := range s.Lab.Hosts {
		fmt.Fprintf(&config, "Host %s.lab.example.com\n  HostName %s\n", host.Hostname, host.Address)
	}
	s.must(os.WriteFile(filepath.Join(home, ".ssh", "config"), []byte(config.String()), 0o600))
	s.Environment = []string{"HOME=" + home}
	s.must(s.WriteManifest(editFields(byName(false))))
	installPlain(s)
	names, err := s.Lab.Host("cp-1").Exec(s.Context(),
		"openssl x509 -in /etc/kubernetes/pki/apiserver.crt -noout -ext subjectAltName")
	s.must(err)
	for _, name := range []string{"cp-1.lab.example.com", "api.lab.example.com", "*.lab.example.com"} {
		if !strings.Contains(names, "DNS:"+name) {
			s.Errorf("%s is not in the certificate's names: %s", name, names)
		}
	}
	s.nothingToDo()
}

// modesRepaired makes files with keys readable by others, and changes the owner of one.
func modesRepaired(s *scenario) {
	opened := map[string]string{ // the expected message by file
		"/etc/kubernetes/admin.conf":      "mode 0644",
		"/etc/kubernetes/pki/sa.key":      "mode 0640",
		"/etc/kubernetes/pki/etcd/ca.key": "mode 0600, owner 1000",
	}
	cp := s.Lab.Host("cp-1")
	before := s.readStarted(s.Members())
	containers := s.listContainers()
	s.breakHost(cp, `cd /etc/kubernetes && chmod 0644 admin.conf && chmod 0640 pki/sa.key && chown 1000 pki/etcd/ca.key &&
		chmod 0604 "$(readlink -f /var/lib/kubelet/pki/kubelet-client-current.pem)"`)
	s.breakHost(s.Lab.Host("worker-1"), "chmod 0644 /etc/kubernetes/kubelet.conf")
	says := []string{"/etc/kubernetes/kubelet.conf (mode 0644)", "/var/lib/kubelet/pki/kubelet-client-", "(mode 0604)"}
	for file, how := range opened {
		says = append(says, file+" ("+how+")")
	}
	s.runCommand(0, []string{"status"}, says...)
	s.runCommand(2, []string{"plan"}, says...)
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.eventually("files with keys are root's alone", time.Minute, func(ctx context.Context) error {
		_, err := cp.Exec(ctx, `for file in /etc/kubernetes/admin.conf /etc/kubernetes/pki/sa.key \
			/etc/kubernetes/pki/etcd/ca.key "$(readlink -f /var/lib/kubelet/pki/kubelet-client-current.pem)"; do
			[ "$(stat -c '%a %u' "$file")" = "600 0" ] || exit 1
		done`)
		return err
	})
	s.checkEqual("what runs on the hosts since when", before, s.readStarted(s.Members()))
	s.checkEqual("the containers that run", containers, s.listContainers())
	s.nothingToDo()
}
