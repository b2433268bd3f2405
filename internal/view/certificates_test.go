package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

func TestCertificatesAreShownHostByHost(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	valid := func(name, signer string, days int) observed.Certificate {
		end := now.AddDate(0, 0, days).Add(time.Hour)
		return observed.Certificate{
			Name: name, Signer: signer, NotAfter: end, Expired: days < 0, Soon: days >= 0 && days < 30,
		}
	}
	want := desired.Cluster{Name: "prod", ControlPlane: []desired.Host{{ID: "1"}, {ID: "2"}},
		Workers: []desired.Host{{ID: "3"}}}
	names := map[string]string{"1": "cp-1", "2": "cp-2", "3": "worker-1"}
	for name, c := range map[string]struct {
		apiserver int // days
		second    observed.Host
		healthy   bool
		verdict   string
	}{
		"well": {200, observed.Host{Reach: observed.Reached}, true, "No certificate expires within 30 days."},
		"soon": {29, observed.Host{Reach: observed.Reached}, false, "kubeone certificates renew renews"},
		"expired": {-2, observed.Host{Reach: observed.Reached}, false,
			"Some certificates have expired. kubeone apply renews"},
		"silent": {200, observed.Host{Reach: observed.Unreachable, Problem: "no route"}, false,
			"cp-2: not known: no route\nSome certificates are not known."},
	} {
		if c.second.Reach == observed.Reached {
			c.second.Certificates = []observed.Certificate{valid("etcd/ca", "etcd-ca", 3000)}
		}
		is := observed.World{Hosts: map[string]observed.Host{
			"1": {Reach: observed.Reached, Certificates: []observed.Certificate{
				valid("admin.conf", "kubernetes", 300), valid("apiserver", "", c.apiserver),
			}},
			"2": c.second,
			"3": {Reach: observed.Reached, Certificates: []observed.Certificate{valid("kubelet-client", "", -1)}},
		}}
		doc := NewCertificatesDocument(want, is, names, now)
		var out bytes.Buffer
		err := doc.Print(&out)
		if err != nil || doc.Healthy != c.healthy || !strings.Contains(out.String(), c.verdict) {
			t.Errorf("%s: healthy %t, %v, want %q in\n%s", name, doc.Healthy, err, c.verdict, out.String())
		}
		if name != "well" {
			continue
		}
		const text = "" +
			"HOST  NAME        KIND         EXPIRES     DAYS LEFT  SIGNED BY\n" +
			"cp-1  admin.conf  kubeconfig   2027-11-11  300        kubernetes\n" +
			"cp-1  apiserver   certificate  2027-08-03  200        -\n" +
			"cp-2  etcd/ca     authority    2035-04-03  3000       etcd-ca\n" +
			"\nNo certificate expires within 30 days.\n"
		if out.String() != text {
			t.Errorf("got\n%swant\n%s", out.String(), text)
		}
	}
}
