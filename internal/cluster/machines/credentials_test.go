package machines

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kubeone/internal/model/desired"
)

func registries(names ...string) map[string]desired.RegistryAuth {
	out := map[string]desired.RegistryAuth{}
	for _, name := range names {
		out[name] = desired.RegistryAuth{Username: "u", Password: "of " + name}
	}
	return out
}

// writes returns the verbs of the requests that change Secrets.
func writes(api *fake.Clientset) []string {
	var out []string
	for _, a := range api.Actions() {
		if a.GetVerb() != "get" {
			out = append(out, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	return out
}

// Stored credentials are read back, unknown registries stay, and unchanged credentials are not written.
func TestCredentialsAreKept(t *testing.T) {
	t.Parallel()
	api := fake.NewClientset()
	s := CredentialStore{Kubernetes: api}
	token := registries("b.example.com:5000", "[2001:db8::1]:5000")
	token["docker.io"] = desired.RegistryAuth{IdentityToken: "t"}
	for _, c := range []struct {
		name   string
		keep   desired.Credentials
		want   *desired.Credentials
		writes []string
	}{
		{"nothing is known", desired.Credentials{}, nil, nil},
		{"there are none", desired.Credentials{Registries: registries()}, nil, nil},
		{"a registry's", desired.Credentials{Registries: registries("a.example.com")},
			&desired.Credentials{Registries: registries("a.example.com")}, []string{"create secrets"}},
		{"the same", desired.Credentials{Registries: registries("a.example.com")},
			&desired.Credentials{Registries: registries("a.example.com")}, nil},
		{"a proxy's, and nothing is known of registries", desired.Credentials{HTTPProxy: "http://u:p@proxy:3128"},
			&desired.Credentials{Registries: registries("a.example.com"), HTTPProxy: "http://u:p@proxy:3128"},
			[]string{"update secrets"}},
		{"others", desired.Credentials{Registries: token}, &desired.Credentials{Registries: token},
			[]string{"update secrets"}},
		{"none any more", desired.Credentials{Registries: registries()}, &desired.Credentials{Registries: registries()},
			[]string{"update secrets"}},
	} {
		api.ClearActions()
		if err := s.SaveHostCredentials(t.Context(), c.keep); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.writes, writes(api)); diff != "" {
			t.Errorf("%s: writes %s", c.name, diff)
		}
		is, revision, err := s.HostCredentials(t.Context())
		if err != nil || (revision == "") != (c.want == nil) || (is == nil) != (c.want == nil) {
			t.Fatalf("%s: %v, revision %q, there are some: %t", c.name, err, revision, is != nil)
		}
		if c.want != nil && (!maps.Equal(is.Registries, c.want.Registries) || is.HTTPProxy != c.want.HTTPProxy ||
			(is.Registries == nil) != (c.want.Registries == nil)) {
			t.Errorf("%s: other credentials are read than were kept", c.name)
		}
	}
}

func TestAClusterWithoutControllersKeepsNoCredentials(t *testing.T) {
	t.Parallel()
	api := fake.NewClientset()
	api.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(corev1.Resource("namespaces"), Namespace)
	})
	s := CredentialStore{Kubernetes: api}
	if err := s.SaveHostCredentials(t.Context(), desired.Credentials{Registries: registries("a")}); err != nil {
		t.Error(err)
	}
}

// A foreign Secret is refused, because names become file names. The error quotes nothing of it.
func TestASecretThatIsNoneOfOursIsRefused(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, data := range map[string]map[string][]byte{
		"no JSON":             {"registries": []byte(secret)},
		"another kind":        {"registries": []byte(`["` + secret + `"]`)},
		"a way to a file":     {"registries": []byte(`{"../../` + secret + `": {"username": "u", "password": "p"}}`)},
		"no credentials":      {"registries": []byte(`{"a.example.com": {}}`)},
		"half of them":        {"registries": []byte(`{"a.example.com": {"password": "` + secret + `"}}`)},
		"proxies of two rows": {"proxies": []byte(`{"http": "http://` + secret + `\nX=y"}`)},
		"proxies as a number": {"proxies": []byte(`{"http": 7}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, keep := range []desired.Credentials{{}, {Registries: registries()}} {
				if HasCredentials(data, keep) {
					t.Error("it is taken for what is kept")
				}
			}
			api := fake.NewClientset(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: CredentialsSecret, Namespace: Namespace}, Data: data,
			})
			s := CredentialStore{Kubernetes: api}
			c, _, err := s.HostCredentials(t.Context())
			if err == nil || strings.Contains(err.Error(), secret) ||
				!strings.Contains(err.Error(), CredentialsSecret) {
				t.Errorf("got %v, %v", c, err)
			}
			if err := s.SaveHostCredentials(t.Context(), desired.Credentials{}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.HostCredentials(t.Context()); err != nil {
				t.Errorf("it is not written anew: %v", err)
			}
		})
	}
}
