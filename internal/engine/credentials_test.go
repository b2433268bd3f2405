package engine

import (
	"strings"
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

func TestUnknownCredentialsAreNoted(t *testing.T) {
	t.Parallel()
	p := Proposal{}
	p.Want.Workers = []desired.Host{{ID: "1"}, {ID: "2"}, {ID: "3"}}
	p.Plan.Hosts = map[string]string{"1": "w-1", "2": "w-2", "3": "w-3"}
	left := []observed.Credential{{Of: "registry credentials of r", Is: observed.CredentialLeft}}
	p.Observed.World.Hosts = map[string]observed.Host{
		"1": {Credentials: left}, "2": {Credentials: left},
		"3": {Credentials: []observed.Credential{{Of: "registry credentials of r", Is: observed.CredentialOther}}},
	}
	got := credentialsLeft(p)
	if len(got) != 1 || !strings.HasPrefix(got[0], "registry credentials of r stay unchanged on w-1 and w-2: ") {
		t.Errorf("notes are %q", got)
	}
}

// An engine without credentials, as in controllers, does not read them from hosts.
func TestEngineWithoutCredentialsDoesNotReadThem(t *testing.T) {
	t.Parallel()
	if (&Engine{}).credentialDigests() != nil {
		t.Error("hosts are asked")
	}
	e := &Engine{cfg: Config{Credentials: &desired.Credentials{
		Registries: map[string]desired.RegistryAuth{"r": {Auth: "x"}},
	}}}
	files := e.credentialDigests()
	for path := range files.Content {
		if of, known := files.Of(path); of != "registry credentials of r" || !known {
			t.Errorf("%s is %q (%t)", path, of, known)
		}
	}
	if len(files.Content) != 1 {
		t.Errorf("%d files", len(files.Content))
	}
}
