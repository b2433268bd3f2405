package probe

import (
	"context"
	"net"
	"net/url"
	"slices"

	"kubeone/internal/etcd"
	"kubeone/internal/model/observed"
)

// etcdResult is what the members said, and the host through which they did.
type etcdResult struct {
	Etcd observed.Etcd
	via  string
}

// readEtcd reads etcd through the first candidate whose member answers for a quorum, else through the first one whose
// member answers: what one member cut off from the others sees says nothing about those.
func (p *prober) readEtcd(ctx context.Context, from <-chan candidate) etcdResult {
	result, reached, problem := p.toEtcd().firstOf(ctx, from)
	result.Etcd.Reached = reached
	switch reached {
	case observed.No:
		result.Etcd.Problem = oneLine(problem)
	case observed.Unknown:
		result.Etcd.Problem = "no control-plane host that holds credentials was reached"
	}
	return result
}

// toEtcd is how etcd is asked. Who has no leader says so in its problem, and has not the last word.
func (p *prober) toEtcd() attempts[etcdResult] {
	return attempts[etcdResult]{
		within: p.EtcdTimeout,
		health: func(c candidate) observed.Tri { return p.latest(c).EtcdHealth },
		try:    p.readEtcdThrough,
		final:  func(r etcdResult) bool { return r.Etcd.Problem == "" },
	}
}

func (p *prober) readEtcdThrough(ctx context.Context, c candidate) (etcdResult, error) {
	began := p.Now()
	defer func() { p.note(c.target.ID, began, Span{What: "etcd", To: p.Now().Sub(began)}) }()
	client, err := etcd.Connect(ctx,
		etcd.Access{Credentials: c.answer.Credentials.Etcd, Via: []etcd.Endpoint{c.etcdEndpoint()}})
	if err != nil {
		p.count(0, 1)
		return etcdResult{}, err
	}
	members, err := client.Observe(ctx)
	p.count(0, client.Requests())
	if closing := client.Close(); err == nil {
		err = closing
	}
	return etcdResult{Etcd: members, via: c.target.ID}, err
}

// etcdEndpoint is the host's own member.
func (c candidate) etcdEndpoint() etcd.Endpoint {
	return etcd.Endpoint{ID: c.target.ID, Address: "127.0.0.1:2379", Dial: c.target.Host.Dial}
}

// etcdAccess reaches etcd through all candidates, the one with that ID first.
func (p *prober) etcdAccess(first string) *etcd.Access {
	var a etcd.Access
	for _, c := range p.candidates(first) {
		if !c.answer.Credentials.Etcd.Complete() {
			continue
		}
		if !a.Credentials.Complete() {
			a.Credentials = c.answer.Credentials.Etcd
		}
		a.Via = append(a.Via, c.etcdEndpoint())
	}
	if len(a.Via) == 0 {
		return nil
	}
	return &a
}

// memberHealth fills in what a host could not say about its own member, from what that member itself said.
func memberHealth(h observed.Host, members observed.Etcd) observed.Host {
	if h.EtcdHealth != observed.Unknown || !slices.Contains(h.Manifests, "etcd") {
		return h
	}
	for _, m := range members.Members {
		if m.Name == h.Hostname && h.Hostname != "" ||
			slices.ContainsFunc(m.PeerURLs, func(peer string) bool { return isOn(peer, h) }) {
			h.EtcdHealth = m.Healthy
		}
	}
	return h
}

// isOn reports whether a peer URL names one of the host's addresses.
func isOn(peer string, h observed.Host) bool {
	u, err := url.Parse(peer)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && slices.Contains(h.Addresses, ip.String())
}
