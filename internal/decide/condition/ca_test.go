package condition

import (
	"slices"
	"testing"

	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/decidetest"
)

func TestWhoseCAIsTheClusters(t *testing.T) {
	t.Parallel()
	const ca, other = decidetest.CA, decidetest.OtherCA
	want := decidetest.Wanted(3, 0)
	begun := func(i int, hash string) observed.Host {
		h := decidetest.Begun(want.ControlPlane[i])
		h.CAHash = hash
		return h
	}
	member := func(i int, hash string) observed.Host {
		h := decidetest.Member(want.ControlPlane[i])
		h.CAHash = hash
		return h
	}
	withPKI := begun(0, ca)
	withPKI.PKI = observed.Yes
	withData := begun(1, other)
	withData.EtcdData = observed.Yes
	unmarked := member(2, other)
	unmarked.Marker = nil
	record := &observed.Record{Cluster: decidetest.Cluster}
	for name, c := range map[string]struct {
		hosts  []observed.Host
		record *observed.Record
		hash   string
		claims []string
	}{
		"no host has one":   {nil, nil, "", nil},
		"a finished host's": {[]observed.Host{withPKI, member(1, other)}, nil, other, nil},
		"two finished hosts disagree": {[]observed.Host{member(0, ca), member(1, other)}, nil, "",
			[]string{ca, other}},
		"the unfinished leader's, by its data": {[]observed.Host{withPKI, withData}, nil, other, nil},
		"the unfinished leader's, by its PKI":  {[]observed.Host{withPKI}, nil, ca, nil},
		"unfinished without either":            {[]observed.Host{begun(0, ca)}, nil, "", nil},
		"of unknown origin":                    {[]observed.Host{unmarked}, nil, "", nil},
		"known by the cluster record":          {[]observed.Host{unmarked}, record, other, nil},
		"silent": {[]observed.Host{decidetest.Silent(want.ControlPlane[0])}, nil, "",
			nil},
	} {
		is := observed.World{Hosts: map[string]observed.Host{}}
		for _, h := range c.hosts {
			is.Hosts[h.ID] = h
		}
		if c.record != nil {
			is.API = observed.API{Reached: observed.Yes, Via: want.ControlPlane[2].ID, Record: c.record}
		}
		if hash, claims := ClusterCA(&want, &is); hash != c.hash || !slices.Equal(claims, c.claims) {
			t.Errorf("%s: %q, claims %v", name, hash, claims)
		}
	}
}

func TestEpochIsThatOfTheNewestFinishedHost(t *testing.T) {
	t.Parallel()
	want := decidetest.Wanted(3, 0)
	is := observed.World{Hosts: map[string]observed.Host{}}
	for i, m := range []observed.Marker{
		{Cluster: decidetest.Cluster, Complete: true, Epoch: 1}, {Cluster: decidetest.Cluster, Epoch: 2},
		{Cluster: "beta", Complete: true, Epoch: 3},
	} {
		h := decidetest.Member(want.ControlPlane[i])
		h.Marker = &m
		is.Hosts[h.ID] = h
	}
	if got := Epoch(&want, &is); got != 1 {
		t.Errorf("epoch %d, want 1", got)
	}
	h := is.Hosts[want.ControlPlane[0].ID]
	if StaleEpoch(&h, 1) || !StaleEpoch(&h, 2) {
		t.Error("a host of epoch 1 is stale in epoch 2 only")
	}
	h.EtcdData, h.Manifests = observed.No, nil
	if StaleEpoch(&h, 2) {
		t.Error("a host that holds nothing is not stale")
	}
}
