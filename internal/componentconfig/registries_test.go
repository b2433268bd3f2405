package componentconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

func TestRegistriesAreConfiguredAtTheirOwnLevel(t *testing.T) {
	t.Parallel()
	const name = "registry.example.com:5000"
	insecure := desired.Registry{Overwrite: name + "/k8s", Insecure: true}
	for title, tt := range map[string]struct {
		registry   desired.Registry
		registries map[string]desired.Mirrored
		want       map[string]string
	}{
		"nothing": {want: map[string]string{}},
		"any certificate, no mirrors": {
			registries: map[string]desired.Mirrored{name: {InsecureSkipVerify: true}},
			want:       map[string]string{name: "server = \"https://" + name + "\"\nskip_verify = true\n"},
		},
		"any certificate, of mirrors too": {
			registries: map[string]desired.Mirrored{name: {Mirrors: []string{"m:1"}, InsecureSkipVerify: true}},
			want: map[string]string{name: "server = \"https://" + name + "\"\nskip_verify = true\n\n" +
				"[host.\"https://m:1\"]\n  capabilities = [\"pull\", \"resolve\"]\n  skip_verify = true\n"},
		},
		"all others": {
			registries: map[string]desired.Mirrored{"*": {InsecureSkipVerify: true}},
			want:       map[string]string{"_default": "skip_verify = true\n"},
		},
		"Docker Hub": {
			registries: map[string]desired.Mirrored{"docker.io": {Mirrors: []string{"mirror.gcr.io"}}},
			want: map[string]string{"docker.io": "server = \"https://registry-1.docker.io\"\n\n" +
				"[host.\"https://mirror.gcr.io\"]\n  capabilities = [\"pull\", \"resolve\"]\n"},
		},
		"an insecure registry": {
			registry: insecure,
			want:     map[string]string{name: "server = \"http://" + name + "\"\nskip_verify = true\n"},
		},
		"an insecure registry with a password": {
			registry:   insecure,
			registries: map[string]desired.Mirrored{name: {HasAuth: true}},
			want:       map[string]string{name: "server = \"http://" + name + "\"\nskip_verify = true\n"},
		},
		"an insecure registry with a mirror that is not": {
			registry:   insecure,
			registries: map[string]desired.Mirrored{name: {Mirrors: []string{"https://m"}}},
			want: map[string]string{name: "server = \"http://" + name + "\"\nskip_verify = true\n\n" +
				"[host.\"https://m\"]\n  capabilities = [\"pull\", \"resolve\"]\n"},
		},
		"a registry that is not insecure": {
			registry: desired.Registry{Overwrite: name + "/k8s"},
			want:     map[string]string{},
		},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			want := desired.Cluster{Registry: tt.registry}
			want.Containerd.Registries = tt.registries
			got := map[string]string{}
			for _, f := range RegistryFiles(want) {
				got[f.Name] = f.Content
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}
