package desired

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// addedExtra returns what the baseline adds to the API server.
func addedExtra(t *testing.T, c Cluster) Extra {
	t.Helper()
	all := c.Harden(HardeningBaseline).Extras
	if len(all) != len(c.Extras)+1 {
		t.Fatalf("%d extras, want one more than %d", len(all), len(c.Extras))
	}
	return all[len(all)-1]
}

func TestTheBaselineIsThereOnceAndOnlyWhereItIsWanted(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", HardeningNone} {
		if c := (Cluster{}).Harden(value); len(c.Extras) > 0 || c.Hardened() || c.Yields() != nil {
			t.Errorf("%q: %v", value, c.Extras)
		}
	}
	e := addedExtra(t, Cluster{})
	want := []string{
		"audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize", "audit-log-path", "audit-policy-file",
		"authentication-config", "service-account-extend-token-expiration", "tls-cipher-suites", "tls-min-version",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(e.Flags))); diff != "" {
		t.Error(diff)
	}
	for _, f := range e.Files {
		if e.Flags["audit-policy-file"] != f.Path && e.Flags["authentication-config"] != f.Path {
			t.Errorf("no flag names %s", f.Path)
		}
	}
}

// The manifest's settings win, also if they are a component's flag or a feature.
func TestTheBaselineYieldsToTheManifest(t *testing.T) {
	t.Parallel()
	flag := func(name string) Cluster {
		return Cluster{Components: Components{APIServer: Component{Flags: map[string]string{name: "x"}}}}
	}
	feature := func(name string) Cluster {
		return Cluster{Extras: []Extra{{Name: "f", Component: APIServer, Flags: map[string]string{name: "x"}}}}
	}
	pids := int64(9)
	for name, c := range map[string]struct {
		cluster Cluster
		gone    []string // flags that the baseline no longer sets
		files   int
		yields  string
	}{
		"nothing":          {Cluster{}, nil, 2, ""},
		"a version of TLS": {flag("tls-min-version"), []string{"tls-min-version"}, 2, "--tls-min-version"},
		"cipher suites": {Cluster{TLSCipherSuites: TLSCipherSuites{APIServer: []string{"A"}}},
			[]string{"tls-cipher-suites"}, 2, "tlsCipherSuites.apiServer"},
		"a policy":        {feature("audit-policy-file"), auditFlagNames(), 1, "--audit-policy-file"},
		"a log's path":    {flag("audit-log-path"), []string{"audit-log-path"}, 2, "--audit-log-path"},
		"no audit log":    {Cluster{NoAuditLog: true}, auditFlagNames(), 1, "features.staticAuditLog"},
		"an issuer":       {feature("oidc-issuer-url"), []string{"authentication-config"}, 1, "--oidc-issuer-url"},
		"an issuer, flag": {flag("oidc-client-id"), []string{"authentication-config"}, 1, "--oidc-client-id"},
		"its own file": {flag("authentication-config"), []string{"authentication-config"}, 1,
			"--authentication-config"},
		"no anonymous clients": {flag("anonymous-auth"), []string{"authentication-config"}, 1, "--anonymous-auth"},
		"pids":                 {Cluster{Kubelet: Kubelet{PodPidsLimit: &pids}}, nil, 2, "kubeletConfig.podPidsLimit"},
		"the controllers'": {Cluster{Extras: []Extra{{
			Name: "f", Component: Scheduler, Flags: map[string]string{"tls-min-version": "x"},
		}}}, nil, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, e := addedExtra(t, Cluster{}), addedExtra(t, c.cluster)
			var gone []string
			for _, name := range slices.Sorted(maps.Keys(all.Flags)) {
				if _, set := e.Flags[name]; !set {
					gone = append(gone, name)
				}
			}
			if diff := cmp.Diff(c.gone, gone); diff != "" {
				t.Error(diff)
			}
			if len(e.Files) != c.files {
				t.Errorf("%d files, want %d", len(e.Files), c.files)
			}
			if _, log := e.Flags["audit-log-path"]; log != (len(e.Directories) > 0) {
				t.Errorf("directories %v", e.Directories)
			}
			yields := c.cluster.Harden(HardeningBaseline).Yields()
			if got := strings.Join(yields, ", "); !strings.HasPrefix(got, c.yields) || (got == "") != (c.yields == "") {
				t.Errorf("yields %q, want %q", got, c.yields)
			}
		})
	}
}

func auditFlagNames() []string {
	return slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(auditFlags())), policyFile)))
}

func TestAHostNotesHowMuchItIsHardened(t *testing.T) {
	t.Parallel()
	for _, value := range []string{HardeningBaseline, HardeningNone} {
		if got := HardeningNoted(map[string]string{HardeningDigest: HardeningNote(value)}); got != value {
			t.Errorf("%q is noted as %q", value, got)
		}
	}
	for _, digests := range []map[string]string{
		nil, {HardeningDigest: "x"}, {"kubelet": HardeningNote(HardeningNone)},
	} {
		if got := HardeningNoted(digests); got != "" {
			t.Errorf("%v is a note of %q", digests, got)
		}
	}
}
