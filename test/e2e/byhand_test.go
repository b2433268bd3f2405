//go:build e2e && long

package e2e

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// TestScriptsByHand creates a cluster by running each host's script at its console. kubeone does the rest.
func TestScriptsByHand(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "byhand", ControlPlanes: 3, Workers: 1})
	s.runParts(
		part{"each host's script alone brings it into the cluster", scriptsRunByHand},
		part{"what concerns the cluster is all that is left", func(s *scenario) {
			s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
			s.must(s.FetchKubeconfig(s.Context()))
			s.awaitHealthy()
			s.nothingToDo()
		}},
	)
}

// fromLeader are the commands that produce what a script needs but does not contain, each as base64.
var fromLeader = map[string]string{
	"token": "/opt/kubeone/bin/kubeadm token create --ttl 15m | base64 -w0",
	"discovery.conf": "/opt/kubeone/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-public " +
		"get configmap cluster-info -o 'jsonpath={.data.kubeconfig}' | base64 -w0",
	"pki.tar": "tar -C /etc/kubernetes/pki -cf - ca.crt ca.key sa.pub sa.key front-proxy-ca.crt front-proxy-ca.key " +
		"etcd/ca.crt etcd/ca.key | base64 -w0",
}

func scriptsRunByHand(s *scenario) {
	dir := s.TempDir()
	s.runCommand(2, []string{"plan", "--scripts", dir}, "create the cluster")
	for _, host := range s.Members() {
		s.must(host.CopyTo(s.Context(), filepath.Join(dir, host.Hostname+".sh"), "/root/node.sh"))
		s.must(host.CopyTo(s.Context(), s.Bundle, "/root/bundle.tar"))
		s.breakHost(host, "mkdir -p /var/lib/kubeone/artifacts && tar -xf /root/bundle.tar --strip-components=1 "+
			"-C /var/lib/kubeone/artifacts blobs/sha256 && rm /root/bundle.tar")
	}
	leader := s.Lab.Host("cp-1")
	s.breakHost(s.Lab.Host("cp-2"), "sh /root/node.sh 2>&1 | grep -q 'missing in /run/kubeone/secrets: pki.tar token'")
	s.breakHost(leader, "sh /root/node.sh")
	for _, host := range []*fleet.Host{s.Lab.Host("cp-2"), s.Lab.Host("cp-3"), s.Lab.Host("worker-1")} {
		s.secretsBrought(leader, host)
		s.joinedByHand(leader, host)
	}
	for _, host := range s.Members() {
		s.breakHost(host, "[ ! -e /run/kubeone/secrets ] && sh /root/node.sh | grep -q 'in the cluster already'")
	}
}

// secretsBrought copies the secrets for a join to a host.
func (s *scenario) secretsBrought(leader, host *fleet.Host) {
	s.Helper()
	for name, command := range fromLeader {
		if name == "pki.tar" && host.Role == fleet.Worker {
			continue
		}
		text, err := leader.Exec(s.Context(), command)
		s.must(err)
		content, err := base64.StdEncoding.DecodeString(text)
		s.must(err)
		s.must(host.WriteFile(s.Context(), "/run/kubeone/secrets/"+name, content))
	}
}

// joinedByHand runs a host's script, and meanwhile approves its certificate.
func (s *scenario) joinedByHand(leader, host *fleet.Host) {
	s.Helper()
	group, ctx := errgroup.WithContext(s.Context())
	ended := make(chan struct{})
	group.Go(func() error {
		defer close(ended)
		_, err := host.Exec(ctx, "sh /root/node.sh")
		return err
	})
	group.Go(func() error {
		return operator.Until(ctx, host.Hostname+" has joined", 15*time.Minute, func(ctx context.Context) error {
			select {
			case <-ended:
				return nil
			default:
			}
			_, err := leader.Exec(ctx, "k='/opt/kubeone/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf'; "+
				"$k get csr -o name | xargs -r $k certificate approve >/dev/null; false")
			return err
		})
	})
	s.must(group.Wait())
}
