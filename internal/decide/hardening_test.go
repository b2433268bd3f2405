package decide

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"
)

func TestHowMuchAClusterIsHardened(t *testing.T) {
	t.Parallel()
	const baseline, none = desired.HardeningBaseline, desired.HardeningNone
	bare := observed.Host{Reach: observed.Reached}
	silent := observed.Host{Reach: observed.Unreachable}
	// made returns a host that has joined, and has noted that value.
	made := func(value string) observed.Host {
		h := observed.Host{
			Reach:   observed.Reached,
			Marker:  &observed.Marker{Cluster: decidetest.Cluster, Role: "control-plane", Complete: true},
			Digests: map[string]string{"kubelet": "k"},
		}
		if value != "" {
			h.Digests[desired.HardeningDigest] = desired.HardeningNote(value)
		}
		return h
	}
	begun := made("")
	begun.Marker.Complete = false
	record := func(value string) *observed.Record {
		return &observed.Record{Cluster: decidetest.Cluster, ManifestDigest: "m", Hardening: value}
	}
	hosts := func(all ...observed.Host) []observed.Host { return all }
	for name, c := range map[string]struct {
		manifest string
		record   *observed.Record
		hosts    []observed.Host
		want     string
		said     bool
	}{
		"bare hosts":                         {"", nil, hosts(bare, bare, bare), baseline, false},
		"bare hosts, and the manifest":       {none, nil, hosts(bare, bare, bare), none, true},
		"an installation that has not ended": {"", nil, hosts(begun, bare, bare), baseline, false},
		"one that has begun with it":         {"", nil, hosts(made(baseline), bare, bare), baseline, true},
		"one that has begun without":         {"", nil, hosts(made(none), bare, bare), none, true},
		"a run that failed left a record": {"", &observed.Record{Cluster: decidetest.Cluster},
			hosts(made(baseline), bare, bare), baseline, true},
		"a host that does not answer":   {"", nil, hosts(bare, silent, bare), "", false},
		"no host answers":               {"", nil, hosts(silent, silent, silent), "", false},
		"a cluster of before":           {"", record(""), hosts(made(""), made(""), made("")), "", true},
		"one without its record":        {"", nil, hosts(made(""), made(""), made("")), "", false},
		"a hardened cluster":            {"", record(baseline), hosts(made(baseline), silent, bare), baseline, true},
		"a hardened cluster, API down":  {"", nil, hosts(made(baseline), silent, silent), baseline, true},
		"one that is not, API down":     {"", nil, hosts(made(none), silent, silent), none, true},
		"between two settings":          {"", nil, hosts(made(none), made(baseline), made(none)), baseline, true},
		"a manifest that wants it":      {baseline, record(""), hosts(made(""), made("")), baseline, true},
		"a manifest that wants it gone": {none, record(baseline), hosts(made(baseline)), none, true},
		"begun, and no longer desired":  {"", record(""), hosts(made(baseline), made(""), made("")), none, true},
		"another cluster's record": {"", &observed.Record{Cluster: "other", ManifestDigest: "m", Hardening: none},
			hosts(bare), baseline, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := desired.Cluster{Name: decidetest.Cluster, Hardening: c.manifest}
			is := observed.World{Hosts: map[string]observed.Host{}, API: observed.API{Record: c.record}}
			for i, h := range c.hosts {
				id := string(rune('a' + i))
				want.ControlPlane = append(want.ControlPlane, desired.Host{ID: id, Role: desired.ControlPlane})
				is.Hosts[id] = h
			}
			if got, said := Hardening(want, is); got != c.want || said != c.said {
				t.Errorf("got %q, said: %t; want %q, %t", got, said, c.want, c.said)
			}
		})
	}
}
