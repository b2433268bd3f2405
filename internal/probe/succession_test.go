package probe

import (
	"encoding/base64"
	"encoding/pem"
	"testing"
	"time"

	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
)

// trusting is a control-plane host's answer: the CAs in ca.crt and admin.conf, and its succession.
func trusting(succession []byte, pairs ...authority.Pair) Answer {
	var all authority.Public
	for _, p := range pairs {
		all = all.With(p.Public)
	}
	config := "apiVersion: v1\nkind: Config\ncurrent-context: a\n" +
		"contexts: [{name: a, context: {cluster: a, user: a}}]\n" +
		"clusters: [{name: a, cluster: {server: 'https://a:6443', certificate-authority-data: " +
		base64.StdEncoding.EncodeToString(all.Text()) + "}}]\nusers: [{name: a, user: {token: a}}]\n"
	return Answer{
		Host: observed.Host{
			Reach: observed.Reached, CAHash: all.Keys()[0],
			Authorities: map[string]observed.Authority{observed.ClusterCA: {Trusted: all.Keys()}},
		},
		Credentials: Credentials{Kubeconfig: []byte(config), Succession: succession},
	}
}

// During a rotation of the cluster's CA, hosts have the former and the next CA in either order and belong to one
// cluster. A caller with the former CA moves to the next when a host stops trusting the former.
func TestHostsAreOfOneClusterWhileItsCAIsRotated(t *testing.T) {
	t.Parallel()
	first := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: selfSigned(t).Certificate[0]})
	var pairs []authority.Pair
	for range 3 {
		made, err := authority.New(time.Now(), first)
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, made)
	}
	old, next, other := pairs[0], pairs[1], pairs[2]
	word, err := authority.SignFollower(next, old)
	if err != nil {
		t.Fatal(err)
	}
	vouched := authority.AddSuccession(nil, old.Public, word)
	for name, c := range map[string]struct {
		a, b   Answer
		known  string
		via    string // the host whose API answered
		ca     string // that identifies the cluster then
		hosts  string // the CA of both hosts
		theirs bool   // whether b's credentials belong to another cluster
	}{
		"one has learnt": {trusting(vouched, old, next), trusting(nil, old), old.ID(), "a", old.ID(), old.ID(), false},
		"one signs": {trusting(vouched, next, old), trusting(vouched, old, next), old.ID(), "a", old.ID(), old.ID(),
			false},
		"one signs, and nothing is known": {trusting(vouched, next, old), trusting(vouched, old, next), "", "a",
			old.ID(), old.ID(), false},
		"one has dropped it": {trusting(vouched, next), trusting(vouched, next, old), old.ID(), "a", old.ID(),
			old.ID(), false},
		"one has dropped it, and nothing is known": {trusting(vouched, next), trusting(vouched, next, old), "", "a",
			old.ID(), old.ID(), false},
		"both have": {trusting(vouched, next), trusting(vouched, next), old.ID(), "b", next.ID(), next.ID(), false},
		"both have, which is known": {trusting(vouched, next), trusting(vouched, next), next.ID(), "b", next.ID(),
			next.ID(), false},
		"no host answers": {trusting(vouched, next, old), trusting(vouched, old, next), old.ID(), "", "", old.ID(),
			false},
		"no host answers, and all have dropped it": {trusting(vouched, next), trusting(vouched, next), old.ID(), "", "",
			old.ID(), false},
		"no host answers, and nothing is known": {trusting(vouched, next), trusting(vouched, next, old), "", "", "",
			old.ID(), false},
		"one has an unreadable file": {trusting(vouched, next, old),
			trusting(append([]byte("x\n"), vouched...), old), old.ID(), "a", old.ID(), old.ID(), false},
		"no CA has signed for the other": {trusting(nil, old), trusting(nil, next), old.ID(), "a", old.ID(), "", true},
		"a foreign one beside it": {trusting(nil, old), trusting(vouched, old, other), old.ID(), "a", old.ID(),
			"", true},
		"the former one, which is dropped": {trusting(vouched, next), trusting(vouched, next, old), next.ID(), "a",
			next.ID(), next.ID(), true},
	} {
		p := &prober{
			Request: Request{CA: c.known, Targets: []Target{
				{ID: "a", ControlPlane: true, Host: says(nil)}, {ID: "b", ControlPlane: true, Host: says(nil)},
			}},
			answers: map[string]Answer{},
		}
		for id, a := range map[string]Answer{"a": c.a, "b": c.b} {
			if believed := p.hasKnownCA(&a); believed == (c.theirs && id == "b") {
				t.Errorf("%s: %s is believed: %t", name, id, believed)
			} else if !believed {
				a.Credentials = Credentials{}
			}
			p.answers[id] = a
		}
		for id, trust := range map[string][]authority.Pair{
			"learnt": {old, next}, "forgot": {next}, "theirs": {other},
		} {
			p.answers[id] = Answer{Host: trusting(nil, trust...).Host} // workers are not asked for credentials
		}
		r := p.buildResult(observed.API{Via: c.via}, etcdResult{})
		if r.CA != c.ca {
			t.Errorf("%s: the cluster is known by %q, want %q", name, r.CA, c.ca)
		}
		for id, h := range r.World.Hosts {
			if id == "theirs" {
				if h.CAHash != other.ID() {
					t.Errorf("%s: a foreign worker is taken for ours", name)
				}
			} else if c.hosts != "" && h.CAHash != c.hosts {
				t.Errorf("%s: %s is of %q, want %q", name, id, h.CAHash, c.hosts)
			}
		}
	}
}

// Copies of CAs are not certificates in use: the end of a former CA breaks nothing and cannot be renewed.
func TestCopiesOfCAsAreNoCertificates(t *testing.T) {
	t.Parallel()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: selfSigned(t).Certificate[0]})
	got := parseCertificates(map[string][]byte{
		pkiDir + "ca.crt": ca, pkiDir + authority.Succession: ca, pkiDir + "ca-signing.crt": ca, nextDir + "ca.crt": ca,
	}, nil, time.Now().AddDate(100, 0, 0))
	if len(got) != 1 || got[0].Name != "ca" || !got[0].Expired {
		t.Errorf("%+v", got)
	}
}
