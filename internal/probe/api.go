package probe

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/model/observed"
)

// readAPI reads the API through the first candidate whose API server answers.
func (p *prober) readAPI(ctx context.Context, from <-chan candidate) observed.API {
	api, reached, problem := attempts[observed.API]{
		within: p.APITimeout,
		health: func(c candidate) observed.Tri { return p.latest(c).APIServer },
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
		dynamic: client.Dynamic,
	}
	if p.Credentials != nil {
		r.kept = p.Credentials.Kept
	}
	var answers observed.Tri
	var silence string
	var asking sync.WaitGroup
	asking.Go(func() { answers, silence = p.askEndpoint(ctx, c) })
	api, err := r.read(ctx)
	asking.Wait()
	p.note(c.target.ID, r.now, Span{What: "API", To: p.Now().Sub(r.now)})
	p.count(int(r.requests.Load()), 0)
	if err != nil {
		return observed.API{}, err
	}
	api.Via, api.EndpointAnswers, api.EndpointProblem = c.target.ID, answers, silence
	return api, nil
}

// API reads what the API says of a cluster, without asking its hosts, and but for its Machines. An API that does not
// answer is an error.
func API(ctx context.Context, a cluster.Access, now time.Time) (Result, error) {
	client, err := cluster.Connect(a)
	if err != nil {
		return Result{}, err
	}
	defer client.Close()
	r := reader{kube: client.Kubernetes, now: now}
	api, err := r.read(ctx)
	if err != nil {
		return Result{}, err
	}
	api.Reached = observed.Yes
	return Result{World: observed.World{API: api}, Access: &a, Requests: Requests{API: int(r.requests.Load())}}, nil
}

// askAPIServer asks a host's API server itself whether it is ready, where the host has no program to ask with.
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
	p.count(1, 0)
	_, err = client.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	a.Host.APIServer = observed.Of(err == nil)
}

// apiEndpoint is the host's own API server.
func (c candidate) apiEndpoint() cluster.Endpoint {
	return cluster.Endpoint{
		ID: c.target.ID, Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.answer.APIPort)),
		Dial: c.target.Host.Dial,
	}
}

// access reaches the API through all candidates, the one with that ID first.
func (p *prober) access(first string) *cluster.Access {
	var a cluster.Access
	for _, c := range p.candidates(first) {
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

// candidates are the hosts that answered and are of the cluster's present life, in the order of the targets, the one
// with that ID first.
func (p *prober) candidates(first string) []candidate {
	var out []candidate
	newest := p.newestLife()
	for _, t := range p.Targets {
		a, ok := p.answers[t.ID]
		c := candidate{t, a}
		switch {
		case !ok, c.life(newest) < newest:
		case t.ID == first:
			out = slices.Insert(out, 0, c)
		default:
			out = append(out, c)
		}
	}
	return out
}
