package decide

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/decide/fsm"
	"kubeone/internal/model/observed"
)

// expiringHost returns a host with two certificates that expire soon, and the kubelet's, which kubeadm does not renew.
func expiringHost(h *observed.Host) {
	const day = 24 * time.Hour
	h.Certificates = []observed.Certificate{
		{Name: "admin.conf", Left: 80 * day}, {Name: "apiserver", Left: 80 * day}, {Name: "ca", Left: 80 * day},
		{Name: "etcd/server", Left: 300 * day}, {Name: "kubelet-client", Left: 80 * day},
	}
	for i := range h.Certificates {
		h.Certificates[i].NotAfter = time.Unix(0, 0).Add(h.Certificates[i].Left)
	}
	h.Certificates[2].NotAfter = h.Certificates[2].NotAfter.Add(9 * 365 * day)
}

func TestCertificatesNearTheirEndAreRenewedWhereThatIsSafe(t *testing.T) {
	t.Parallel()
	names := []string{"admin.conf", "apiserver"}
	for name, c := range map[string]struct {
		change func(*Input)
		route  fsm.Route
		want   map[string][]string
	}{
		"two hosts": {func(in *Input) { in.changeObserved(cp1, expiringHost); in.changeObserved(cp3, expiringHost) },
			fsm.Repair,
			map[string][]string{cp1: names, cp3: names}},
		"a worker has none": {func(in *Input) { in.changeObserved(w1, expiringHost) }, fsm.Nothing, nil},
		"outside the limit": {func(in *Input) {
			in.changeObserved(cp1, expiringHost)
			in.Limit = map[string]bool{cp2: true}
		}, fsm.Nothing, nil},
		"without the CA's key": {func(in *Input) {
			in.changeObserved(cp1, expiringHost)
			in.changeObserved(cp1, func(h *observed.Host) { h.PKI = observed.No })
		}, fsm.Instruct, nil},
		"short-lived by the manifest": {func(in *Input) {
			in.changeObserved(cp1, expiringHost)
			in.Want.Certificates.ValidityPeriod = "2000h" // 83 days
		}, fsm.Nothing, nil},
		"an upgrade renews them": {func(in *Input) {
			in.changeObserved(cp1, expiringHost)
			in.Want.KubernetesVersion = "1.36.4"
		}, fsm.Upgrade, nil},
		"edited files go first": {func(in *Input) {
			in.changeObserved(cp1, expiringHost)
			in.editFiles(cp2, config)
		}, fsm.Repair, nil},
		"drift waits for them": {func(in *Input) {
			in.changeObserved(cp1, expiringHost)
			in.Config[cp1] = map[string]string{"kubelet": "new"}
			in.changeObserved(cp1, func(h *observed.Host) { h.Digests = map[string]string{"kubelet": "old"} })
		}, fsm.Repair, map[string][]string{cp1: names}},
	} {
		in := healthyCluster(3, 1)
		c.change(&in)
		d := Decide(in)
		if d.Route != c.route {
			t.Errorf("%s: route %s, want %s: %+v", name, d.Route, c.route, d.Trace)
		}
		if diff := cmp.Diff(c.want, d.Renewals); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
