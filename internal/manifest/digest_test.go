package manifest_test

import (
	"testing"

	"kubeone/internal/model/desired"
)

// Two hosts, in either order, with and without IDs.
const (
	twoHosts = head + `
name: demo
cloudProvider: {none: {}}
apiEndpoint: {host: 192.0.2.100}
controlPlane: {hosts: [{publicAddress: 192.0.2.1}]}
staticWorkers: {hosts: [{publicAddress: 192.0.2.11, labels: {rack: a}}, {publicAddress: 192.0.2.12}]}
`
	twoHostsReordered = head + `
name: demo
cloudProvider: {none: {}}
apiEndpoint: {host: 192.0.2.100}
controlPlane: {hosts: [{publicAddress: 192.0.2.1, id: cp-a}]}
staticWorkers: {hosts: [{publicAddress: 192.0.2.12, id: b}, {publicAddress: 192.0.2.11, id: a, labels: {rack: a}}]}
`
	twoHostsRelabelled = head + `
name: demo
cloudProvider: {none: {}}
apiEndpoint: {host: 192.0.2.100}
controlPlane: {hosts: [{publicAddress: 192.0.2.1}]}
staticWorkers: {hosts: [{publicAddress: 192.0.2.11}, {publicAddress: 192.0.2.12, labels: {rack: a}}]}
`
)

func TestOrderAndIDsDoNotChangeTheDigest(t *testing.T) {
	t.Parallel()
	as := func(text string) desired.Cluster { return load(t, text, "").Cluster }
	before, reordered, relabelled := as(twoHosts), as(twoHostsReordered), as(twoHostsRelabelled)
	if before.Digest != reordered.Digest {
		t.Error("the order of the hosts, or their IDs, make it another cluster")
	}
	if before.Digest == relabelled.Digest {
		t.Error("a label on another host is not noticed")
	}
}

func TestAHostsIDIsTheManifestsElseItsAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]desired.Host{
		twoHosts:          {ID: "192.0.2.11", HasOwnID: false},
		twoHostsReordered: {ID: "b", HasOwnID: true},
	} {
		if got := load(t, text, "").Cluster.Workers[0]; got.ID != want.ID || got.HasOwnID != want.HasOwnID {
			t.Errorf("ID %q, the manifest's: %t; want %q, %t", got.ID, got.HasOwnID, want.ID, want.HasOwnID)
		}
	}
}
