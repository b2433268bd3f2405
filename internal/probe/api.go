package probe

import (
	"context"
	"kubeone/internal/cluster"
	"kubeone/internal/etcd"
	"kubeone/internal/model/observed"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// readAPI reads the API through the first candidate whose API server answers.
func (p *prober) readAPI(ctx context.Context, from <-chan candidate) observed.API {
	api, reached, problem := attempts[observed.API]{
		within: p.APITimeout,
		health: func(c candidate) observed.Tri { return p.latestAnswer(c).APIServer },
		try:    p.readAPIThrough,
	}.firstOf(ctx, from)
	api.Reached = reached
	switch reached {
	case observed.No:
		api.Problem = oneLine(problem)
	case observed.Unknown:
		api.Problem = "no control-plane host that holds credentials was reached"
	}
	return api
}

func (p *prober) readAPIThrough(ctx context.Context, c candidate) (observed.API, error) {
	client, err := cluster.Connect(cluster.Access{
		Kubeconfig: c.answer.Credentials.Kubeconfig, Via: []cluster.Endpoint{c.apiEndpoint()},
	})
	if err != nil {
		return observed.API{}, err
	}
	defer client.Close()
	r := reader{
		kube: client.Kubernetes, applier: client.Applier, components: p.Components, now: p.Now(),
		dynamic: client.Dynamic, releases: p.Releases,
	}
	if p.Credentials != nil {
		r.kept = p.Credentials.Kept
	}
	var answers observed.Tri
	var silence string
	var asking sync.WaitGroup
	asking.Go(func() { answers, silence = p.askEndpoint(ctx, c) })
	api, err := r.readAll(ctx)
	asking.Wait()
	p.addSpans(c.target.ID, r.now, Span{What: "API", To: p.Now().Sub(r.now)})
	p.countRequests(client.Requests(), 0)
	if err != nil {
		return observed.API{}, err
	}
	api.Via, api.EndpointAnswers, api.EndpointProblem = c.target.ID, answers, silence
	return api, nil
}

// API reads the API of a cluster without connecting to its hosts. It does not read Machines. It returns an error if the
// API does not answer.
func API(ctx context.Context, a cluster.Access, now time.Time) (Result, error) {
	client, err := cluster.Connect(a)
	if err != nil {
		return Result{}, err
	}
	defer client.Close()
	r := reader{kube: client.Kubernetes, now: now}
	api, err := r.readAll(ctx)
	if err != nil {
		return Result{}, err
	}
	api.Reached = observed.Yes
	return Result{World: observed.World{API: api}, Access: &a, Requests: Requests{API: client.Requests()}}, nil
}

// askAPIServer checks through the tunnel of a host whether its API server is ready. It is used if the host itself has
// no program for that.
func (p *prober) askAPIServer(ctx context.Context, t Target, a *Answer) {
	if a.Host.APIServer != observed.Unknown || len(a.Credentials.Kubeconfig) == 0 ||
		!slices.Contains(a.Host.Manifests, "kube-apiserver") {
		return
	}
	client, err := cluster.Connect(cluster.Access{
		Kubeconfig: a.Credentials.Kubeconfig, Via: []cluster.Endpoint{candidate{t, *a}.apiEndpoint()},
	})
	if err != nil {
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, p.APITimeout)
	defer cancel()
	p.countRequests(1, 0)
	_, err = client.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	a.Host.APIServer = observed.Of(err == nil)
}

// apiEndpoint returns the endpoint of the API server on the host.
func (c candidate) apiEndpoint() cluster.Endpoint {
	return cluster.Endpoint{
		ID: c.target.ID, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.answer.APIPort)),
		Dial: c.target.Host.Dial,
	}
}

// connectAPI returns access to the API through all candidates, the given one first, or nil if there are none.
func (p *prober) connectAPI(first string) *cluster.Access {
	var a cluster.Access
	for _, c := range p.apiCandidates(first) {
		if len(c.answer.Credentials.Kubeconfig) == 0 {
			continue
		}
		if a.Kubeconfig == nil {
			a.Kubeconfig = c.answer.Credentials.Kubeconfig
		}
		a.Via = append(a.Via, c.apiEndpoint())
	}
	if a.Kubeconfig == nil {
		return nil
	}
	return &a
}

// apiCandidates returns the hosts that answered and joined since the last recovery of the cluster, in the order of the
// targets, the given one first.
func (p *prober) apiCandidates(first string) []candidate {
	var out []candidate
	newest := p.newestLife()
	for _, t := range p.Targets {
		a, ok := p.answers[t.ID]
		c := candidate{t, a}
		switch {
		case !ok, c.clusterEpoch(newest) < newest:
		case t.ID == first:
			out = slices.Insert(out, 0, c)
		default:
			out = append(out, c)
		}
	}
	return out
}

// etcdResult is the answer of the etcd members and the host through which it came.
type etcdResult struct {
	Etcd observed.Etcd
	via  string
}

// readEtcd reads etcd through the first candidate whose member has quorum. If there is none, it uses the first
// candidate whose member answers. It prefers quorum because a member that cannot reach the others knows nothing about
// them.
func (p *prober) readEtcd(ctx context.Context, from <-chan candidate) etcdResult {
	result, reached, problem := p.etcdAttempts().firstOf(ctx, from)
	result.Etcd.Reached = reached
	switch reached {
	case observed.No:
		result.Etcd.Problem = oneLine(problem)
	case observed.Unknown:
		result.Etcd.Problem = "no control-plane host that holds credentials was reached"
	}
	return result
}

// etcdAttempts returns the attempts to read etcd. An answer from a member without a leader has a problem and is not
// final.
func (p *prober) etcdAttempts() attempts[etcdResult] {
	return attempts[etcdResult]{
		within: p.EtcdTimeout,
		health: func(c candidate) observed.Tri { return p.latestAnswer(c).EtcdHealth },
		try:    p.readEtcdThrough,
		final:  func(r etcdResult) bool { return r.Etcd.Problem == "" },
	}
}

func (p *prober) readEtcdThrough(ctx context.Context, c candidate) (etcdResult, error) {
	began := p.Now()
	defer func() { p.addSpans(c.target.ID, began, Span{What: "etcd", To: p.Now().Sub(began)}) }()
	client, err := etcd.Connect(ctx,
		etcd.Access{Credentials: c.answer.Credentials.Etcd, Via: []etcd.Endpoint{c.etcdEndpoint()}})
	if err != nil {
		p.countRequests(0, 1)
		return etcdResult{}, err
	}
	members, err := client.Observe(ctx)
	p.countRequests(0, client.Requests())
	if closing := client.Close(); err == nil {
		err = closing
	}
	return etcdResult{Etcd: members, via: c.target.ID}, err
}

// etcdEndpoint returns the endpoint of the member on the host.
func (c candidate) etcdEndpoint() etcd.Endpoint {
	return etcd.Endpoint{ID: c.target.ID, Address: "127.0.0.1:2379", Dial: c.target.Host.Dial}
}

// etcdAccess returns access to etcd through all candidates, the given one first.
func (p *prober) etcdAccess(first string) *etcd.Access {
	var a etcd.Access
	for _, c := range p.apiCandidates(first) {
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

// memberHealth completes what a host could not report about its etcd member from the answer of that member.
func memberHealth(h observed.Host, members observed.Etcd) observed.Host {
	if h.EtcdHealth != observed.Unknown || !slices.Contains(h.Manifests, "etcd") {
		return h
	}
	for _, m := range members.Members {
		if m.Name == h.Hostname && h.Hostname != "" ||
			slices.ContainsFunc(m.PeerURLs, func(peer string) bool { return hasPeerURL(peer, h) }) {
			h.EtcdHealth = m.Healthy
		}
	}
	return h
}

// hasPeerURL reports whether a peer URL contains one of the addresses of the host.
func hasPeerURL(peer string, h observed.Host) bool {
	u, err := url.Parse(peer)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && slices.Contains(h.Addresses, ip.String())
}
