package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/observed"
)

// A user on the host may listen in a component's place, but not as root.
func TestOnlyRootAnswersForAComponent(t *testing.T) {
	t.Parallel()
	said := []string{"kubelet 200"}
	user := []observed.Port{{Number: 10248, Process: "kubelet", User: 1000}}
	for name, c := range map[string]struct {
		lines lines
		is    observed.Tri
		who   []observed.Port
	}{
		"the listener is unknown": {lines{}, observed.Yes, nil},
		"root listens": {
			lines{"listen": {"LISTEN 0 1 127.0.0.1:10248 0.0.0.0:* ino:1 sk:2"}}, observed.Yes, nil,
		},
		"a user listens": {
			lines{"listen": {"LISTEN 0 1 127.0.0.1:10248 0.0.0.0:* uid:1000 ino:1 sk:2"}}, observed.No, user,
		},
		"a user listens everywhere": {
			lines{"listen": {`LISTEN 0 1 *:10248 *:* users:(("nc",pid=7,fd=3)) uid:1000 ino:1`}}, observed.No, user,
		},
		"a user listens elsewhere": {
			lines{"listen": {"LISTEN 0 1 192.0.2.1:10248 0.0.0.0:* uid:1000 ino:1"}}, observed.Yes, nil,
		},
		"a user, by the kernel's table": {
			lines{"socket": {"0: 0100007F:2808 00000000:0000 0A 0:0 00:0 00000000  1000  0 1"}}, observed.No, user,
		},
		"a user listens to IPv6 beside root": {
			lines{"listen": {
				"LISTEN 0 1 127.0.0.1:10248 0.0.0.0:* ino:1 sk:2",
				"LISTEN 0 1 [::]:10248 [::]:* uid:1000 ino:3 v6only:1",
			}}, observed.Yes, nil,
		},
		"the same, by the kernel's table": {
			lines{"socket": {
				"0: 0100007F:2808 00000000:0000 0A 0:0 00:0 00000000  0  0 1",
				"0: 00000000000000000000000000000000:2808 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0",
			}}, observed.Yes, nil,
		},
		"a user in a group of processes that calls itself root": {
			lines{"listen": {"LISTEN 0 1 127.0.0.1:10248 0.0.0.0:* uid:1000 ino:1 cgroup:/x uid:0"}}, observed.No,
			user,
		},
		"root, by the kernel's table": {
			lines{"socket": {"0: 0100007F:2808 00000000:0000 0A 0:0 00:0 00000000  0  0 1"}}, observed.Yes, nil,
		},
	} {
		var h observed.Host
		c.lines["health"] = append(said, said...) // which counts once
		parseHealth(&h, c.lines)
		if h.Healthz != c.is {
			t.Errorf("%s: the kubelet is well: %q, want %q", name, h.Healthz, c.is)
		}
		if diff := cmp.Diff(c.who, h.Impostors); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var bound observed.Host // no port is reported: it listens at another address
	parseHealth(&bound,
		lines{"health": {"apiserver 200"}, "listen": {"LISTEN 0 1 127.0.0.1:6443 0.0.0.0:* uid:99 ino:1"}})
	if bound.APIServer != observed.Yes {
		t.Errorf("the API server behind a load balancer: %q", bound.APIServer)
	}
	var h observed.Host
	parseHealth(&h, lines{
		"api-port": {"7443"}, "runs-as": {"etcd 1000", "scheduler 999"},
		"health": {"apiserver 200", "scheduler 200", "etcd 200"},
		"listen": {
			"LISTEN 0 1 *:6443 *:* uid:99 ino:1", // a load balancer on this host
			"LISTEN 0 1 127.0.0.1:10259 0.0.0.0:* uid:1000",
			"LISTEN 0 1 127.0.0.1:2381 0.0.0.0:* uid:1000",
		},
	})
	if h.APIServer != observed.Yes || h.Scheduler != observed.No || h.EtcdHealth != observed.Yes {
		t.Errorf("API server %q, scheduler %q, etcd %q", h.APIServer, h.Scheduler, h.EtcdHealth)
	}
}
