package v1beta2

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultIsIdempotent(t *testing.T) {
	t.Parallel()
	c := &KubeOneCluster{
		ControlPlane: ControlPlaneConfig{Hosts: []HostConfig{{PrivateAddress: "10.0.0.1"}}},
		Proxy:        ProxyConfig{HTTP: "http://proxy:1", NoProxy: " a , localhost,a"},
		Versions:     VersionConfig{Kubernetes: "v1.36.3"},
		ClusterNetwork: ClusterNetworkConfig{
			KubeProxy: &KubeProxyConfig{Conntrack: &Conntrack{}},
		},
	}
	c.Default()
	once, err := c.WithoutSecrets()
	if err != nil {
		t.Fatal(err)
	}
	c.Default()
	if diff := cmp.Diff(once, c); diff != "" {
		t.Errorf("the second time changes something (-once +twice):\n%s", diff)
	}
	if want := "127.0.0.1/8,localhost,cluster.local,10.244.0.0/16,10.96.0.0/12,a"; c.Proxy.NoProxy != want {
		t.Errorf("noProxy is %q, want %q", c.Proxy.NoProxy, want)
	}
	if c.APIEndpoint.Host != "10.0.0.1" || c.ControlPlane.Hosts[0].PublicAddress != "10.0.0.1" {
		t.Errorf("addresses: %+v, %+v", c.APIEndpoint, c.ControlPlane.Hosts[0])
	}
}

func TestNothingIsExceptedFromNoProxy(t *testing.T) {
	t.Parallel()
	c := &KubeOneCluster{}
	c.Default()
	if c.Proxy != (ProxyConfig{}) {
		t.Errorf("proxy is %+v", c.Proxy)
	}
}

func TestEveryProviderCanBeChosenByItsName(t *testing.T) {
	t.Parallel()
	spec := reflect.TypeFor[CloudProviderSpec]()
	chosen := 0
	for f := range spec.Fields() {
		if f.Type.Kind() != reflect.Pointer {
			continue
		}
		var c CloudProviderSpec
		if !c.Choose(JSONName(f)) {
			t.Errorf("%s cannot be chosen", JSONName(f))
		}
		if diff := cmp.Diff([]string{JSONName(f)}, c.Providers()); diff != "" {
			t.Errorf("providers (-want +got):\n%s", diff)
		}
		chosen++
	}
	if chosen != 12 {
		t.Errorf("%d providers, want 12", chosen)
	}
	if new(CloudProviderSpec).Choose("moon") {
		t.Error("a provider that does not exist can be chosen")
	}
}

func TestHostKeyTakesEveryUsualForm(t *testing.T) {
	t.Parallel()
	const wire = "AAAAC3NzaC1lZDI1NTE5AAAAIIwdzLz0IuON3fRSee1Y1eYThTr3F9KCsDs/z+W73VMJ"
	line := "ssh-ed25519 " + wire + " root@host\n"
	for _, key := range []string{wire, " " + wire + "\n", line, base64.StdEncoding.EncodeToString([]byte(line))} {
		if got, err := HostKey(key); err != nil || got != wire {
			t.Errorf("HostKey(%q) = %q, %v", key, got, err)
		}
	}
	for _, key := range []string{"", "x", "aGVsbG8=", strings.TrimPrefix(line, "ssh-ed25519 ")} {
		if got, err := HostKey(key); err == nil {
			t.Errorf("HostKey(%q) = %q, and no error", key, got)
		}
	}
}

func TestSecretLookingKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"password": true, "db_Password": true, "accessKeyID": true, "api-key": true, "kubeconfig": true,
		"serviceAccountToken": true, "REDIS_PASS": true, "dbPwd": true, "passphrase": true, "pass": true,
		"wifi-psk": true, "encryptionKey": true, ".dockerconfigjson": true, "registry.auth": true,
		"sessionCookie": true, "DBPASS": false,
		"serverType": false, "keyName": false, "sshKeys": false, "region": false, "bypass": false, "compass": false,
		"": false, "-": false, "authMode": false,
	} {
		if got := looksSecret(key); got != want {
			t.Errorf("looksSecret(%q) = %t", key, got)
		}
	}
}

func TestSecretsInTextsAreHiddenUnderAnyKey(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\n"
	in := Raw{
		"dsn": "postgres://u:p@db:5432/x?y=1", "plain": "https://example.com/a@b", "ca": key, "n": 1.0,
		"list": []any{
			"amqp://u@q", map[string]any{"also": "redis://:p@r", "pwd": "x"}, []any{"mysql://a:b@c/d e://f@g"},
		},
	}
	hideSecrets(in)
	want := Raw{
		"dsn": "postgres://db:5432/x?y=1", "plain": "https://example.com/a@b", "ca": "", "n": 1.0,
		"list": []any{"amqp://q", map[string]any{"also": "redis://r"}, []any{"mysql://c/d e://g"}},
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Error(diff)
	}
	texts := map[string]string{"url": "ftp://u:p@h", "key": "x", "note": "y"}
	if hideSecrets(texts); cmp.Diff(map[string]string{"url": "ftp://h", "note": "y"}, texts) != "" {
		t.Errorf("got %v", texts)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	got := []string{Child("", "a"), Child("a", "b"), Child("a", "docker.io"), Child("", "*"), Item("a.b", 2)}
	if diff := cmp.Diff([]string{"a", "a.b", `a["docker.io"]`, `["*"]`, "a.b[2]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryFieldHasAName: a field without a json tag could not be set, and its absence would not be noticed.
func TestEveryFieldHasAName(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(typ reflect.Type) {
		typ = structOf(typ)
		if typ == nil || seen[typ] {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			if JSONName(f) == "" && !f.Anonymous {
				t.Errorf("%s.%s has no name", typ.Name(), f.Name)
			}
			check(f.Type)
		}
	}
	check(reflect.TypeFor[KubeOneCluster]())
	if len(seen) < 60 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
