package record

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubeone/internal/cluster/apicall"
	"kubeone/internal/testutil/clustertest"
)

func TestRecordIsReadAsItWasSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, api := faked(t)
		if got, err := c.Record(t.Context()); got != nil || err != nil {
			t.Fatalf("without a record: got %v, %v", got, err)
		}
		when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		want := &Record{
			Cluster: "demo", ManifestDigest: "abc", Manifest: "name: demo\n", RunID: "run-1",
			Hardening: "baseline",

			Nodes:  map[string]string{"192.0.2.1": "cp-1"},
			Addons: map[string]string{"flannel": "d1"},
			History: []Run{
				{
					ID: "run-1", Who: "alice", From: "laptop", PlanDigest: "p", Started: when,
					Finished: when.Add(time.Minute), Result: Done, Planned: 2,
					Steps: []Step{{ID: "init/cp-1", Result: Done, Began: 0.5, Seconds: 2.25}},
				},
			},
		}
		save := func(r *Record) error {
			run := want.History[0]
			*r = Record{
				Cluster: want.Cluster, ManifestDigest: want.ManifestDigest, Manifest: want.Manifest, RunID: want.RunID,
				Nodes: want.Nodes, Addons: want.Addons, History: r.History, Hardening: want.Hardening,
			}
			r.AddRun(run)
			return nil
		}
		for range 2 { // the second time nothing changes and nothing is written
			if err := c.UpdateRecord(t.Context(), save); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.Record(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"create configmaps"}, clustertest.Writes(api)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestUpdateRecordBeginsAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: "kube-system"},
			Data:       map[string]string{"theirs": "kept", "cluster": "old"},
		}
		c, api := faked(t, held)
		clustertest.FailOnce(api, "update", "configmaps",
			apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, Name, errors.New("changed")))
		calls := 0
		err := c.UpdateRecord(t.Context(), func(r *Record) error {
			calls++
			r.Cluster = "demo"
			return nil
		})
		if err != nil || calls != 2 {
			t.Errorf("got %v after %d calls, want success after 2", err, calls)
		}
		got, err := c.Kubernetes.CoreV1().ConfigMaps("kube-system").Get(t.Context(), Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Data["theirs"] != "kept" || got.Data["cluster"] != "demo" {
			t.Errorf("got %v", got.Data)
		}
	})
}

func TestRecordRefusesPrivateKeys(t *testing.T) {
	t.Parallel()
	// only the heading is real
	key := "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\n"
	c, api := faked(t)
	for name, change := range map[string]func(*Record){
		"manifest": func(r *Record) { r.Manifest = "caBundle: |\n  " + key },
		"history":  func(r *Record) { r.AddRun(Run{Error: key}) },
		"digests":  func(r *Record) { r.Addons["x"] = base64.StdEncoding.EncodeToString([]byte(key)) },
	} {
		err := c.UpdateRecord(t.Context(), func(r *Record) error { change(r); return nil })
		if apicall.Classify(err) != apicall.Terminal || strings.Contains(fmt.Sprint(err), "MIIE") {
			t.Errorf("%s: got %v, want a terminal error that does not show the key", name, err)
		}
	}
	if got := clustertest.Writes(api); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

func TestPrivateKeysAreFoundHoweverTheyAreWrapped(t *testing.T) {
	t.Parallel()
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	kubeconfig := "users:\n- name: admin\n  user:\n    client-key-data: " +
		b64("-----BEGIN EC PRIVATE KEY-----\nMHc=\n") + "\n"
	cases := map[string]struct {
		text string
		want bool
	}{
		"plain":                    {"key: |\n  -----BEGIN PRIVATE KEY-----", true},
		"OpenSSH":                  {"-----BEGIN OPENSSH PRIVATE KEY-----", true},
		"encrypted":                {"-----BEGIN ENCRYPTED PRIVATE KEY-----", true},
		"base64 in a kubeconfig":   {kubeconfig, true},
		"a kubeconfig in a Secret": {"data:\n  config: " + b64(kubeconfig), true},
		"base64 in lines": {
			"key: |\n  " + b64("-----BEGIN PRIVATE KEY-----\n0123456789012345678")[:64] + "\n  AAAA", true,
		},
		"URL alphabet":  {base64.RawURLEncoding.EncodeToString([]byte("-----BEGIN PRIVATE KEY-----\xff\xfe")), true},
		"a certificate": {"-----BEGIN CERTIFICATE-----\nMIIB\n", false},
		"a public key":  {b64("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"), false},
		"a file's name": {"sshPrivateKeyFile: /home/alice/.ssh/id_ed25519_for_the_demo_cluster", false},
		"a digest":      {"sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", false},
	}
	for name, c := range cases {
		if got := holdsPrivateKey(c.text); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
