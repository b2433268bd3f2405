package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"sync"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/jointoken"
	"kubeone/internal/desired"
	"kubeone/internal/host"
	"kubeone/internal/observed"
	"kubeone/internal/plan"
	"kubeone/internal/script"
	"kubeone/internal/step"
)

// session is what a run learns on its way: secrets, which stay in memory, and the connection to the API.
type session struct {
	state struct {
		sync.Mutex
		token         string
		tokenIDs      []string // of all tokens that the run has made
		tokenMade     time.Time
		client        API
		stopApprovals context.CancelFunc
	}
}

// secretsFor are the files that a step's stage may read, by name.
func (r *Run) secretsFor(ctx context.Context, s plan.Step) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, secret := range s.Intent.Secrets() {
		files, err := r.secret(ctx, s, secret)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, files)
	}
	return out, nil
}

// secret is a secret as the files in which a stage finds it.
func (r *Run) secret(ctx context.Context, s plan.Step, secret step.Secret) (map[string][]byte, error) {
	switch secret {
	case step.NewTokenSecret:
		return map[string][]byte{script.TokenFile: []byte(r.token())}, nil
	case step.TokenSecret:
		token, err := r.freshToken(ctx)
		return map[string][]byte{script.TokenFile: []byte(token)}, err
	case step.DiscoverySecret:
		discovery, err := r.discovery()
		return map[string][]byte{script.DiscoveryFile: discovery}, err
	case step.PKISecret:
		pki, err := r.readPKI(ctx, step.ParamsOf[step.CopyPKIParams](s.Intent).Peer)
		return map[string][]byte{script.PKIFile: pki}, err
	case step.BackupSecret:
		return r.Copy.secrets()
	}
	return nil, fmt.Errorf("nobody knows where the secret %q comes from", secret)
}

// token is the run's join token, made when it is first asked for.
func (r *Run) token() string {
	r.state.Lock()
	defer r.state.Unlock()
	if r.state.token == "" {
		token, id := jointoken.New()
		r.state.token, r.state.tokenMade = token, r.Now()
		r.state.tokenIDs = append(r.state.tokenIDs, id)
	}
	return r.state.token
}

// knownToken is the token of the run that this process knows, and how old it is; "" if there is none.
func (r *Run) knownToken() (token string, age time.Duration) {
	r.state.Lock()
	defer r.state.Unlock()
	return r.state.token, r.Now().Sub(r.state.tokenMade)
}

// freshToken is the run's join token, made anew when it has become too old to begin a join with, or is known to
// another process only.
func (r *Run) freshToken(ctx context.Context) (string, error) {
	if token, age := r.knownToken(); token != "" && age < TokenAge {
		return token, nil
	}
	client, err := r.client() //nolint:contextcheck // it outlives the step
	if err != nil {
		return "", err
	}
	if err := r.makeToken(ctx, client); err != nil {
		return "", err
	}
	return r.token(), nil
}

// discovery is the kubeconfig by which joins verify the cluster.
func (r *Run) discovery() ([]byte, error) {
	r.state.Lock()
	defer r.state.Unlock()
	if r.Access == nil {
		return nil, errors.New("the API of the cluster cannot be reached, so its CA is not known")
	}
	return r.Access.Discovery("https://" + net.JoinHostPort(r.Want.Endpoint.Host, strconv.Itoa(r.Want.Endpoint.Port)))
}

// readPKI reads the CAs and service-account keys from a control-plane host into memory, as a tar.
func (r *Run) readPKI(ctx context.Context, from string) ([]byte, error) {
	h, ok := r.Hosts[from]
	if !ok {
		return nil, fmt.Errorf("the host that has the CAs (%s) was not reached", from)
	}
	const read = "tar -C /etc/kubernetes/pki -cf - ca.crt ca.key sa.pub sa.key front-proxy-ca.crt front-proxy-ca.key " +
		"etcd/ca.crt etcd/ca.key"
	res, err := h.Run(ctx, host.Cmd{Name: "read the CAs", Script: read, Secret: true})
	return res.Stdout, err
}

// after does what a step's success makes possible.
func (r *Run) after(ctx context.Context, s plan.Step) error {
	if !s.Intent.Kind.CreatesControlPlane() {
		return nil
	}
	res, err := r.Hosts[s.Host].Run(ctx,
		host.Cmd{Name: "read the new cluster's credentials", Script: "cat /etc/kubernetes/admin.conf", Secret: true})
	if err != nil {
		return err
	}
	r.state.Lock()
	defer r.state.Unlock()
	r.Access = &cluster.Access{Kubeconfig: res.Stdout, Via: r.endpoints(s.Host)}
	return nil
}

// endpoints are the ways to the API: through the host given first, then through every other control-plane host.
func (r *Run) endpoints(first string) []cluster.Endpoint {
	out := []cluster.Endpoint{r.endpoint(first)}
	for _, h := range r.Want.ControlPlane {
		if _, ok := r.Hosts[h.ID]; ok && h.ID != first {
			out = append(out, r.endpoint(h.ID))
		}
	}
	return out
}

func (r *Run) endpoint(id string) cluster.Endpoint {
	return cluster.Endpoint{
		ID:      r.name(id),
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(script.APIPort)),
		Dial:    r.Hosts[id].Dial,
	}
}

// client is the connection to the API. The first call also begins to approve kubelets' serving certificates.
func (r *Run) client() (API, error) {
	r.state.Lock()
	defer r.state.Unlock()
	if r.state.client != nil {
		return r.state.client, nil
	}
	client, err := r.Connect.api(r.Access)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.state.client, r.state.stopApprovals = client, cancel
	go client.ServeApprovals(ctx, r.expected(), func(d certificates.Decision) {
		if !d.Approved {
			r.emit(Event{
				Type: Warning,
				Host: d.Node,
				Line: "serving certificate " + d.Request + " was left alone: " + d.Reason,
			})
		}
	})
	return client, nil
}

// expected are the names and addresses that each node may have a serving certificate for.
func (r *Run) expected() certificates.Expected {
	out := certificates.Expected{}
	for _, h := range r.Want.Hosts() {
		out[r.name(h.ID)] = namesOf(h, r.World.Hosts[h.ID])
	}
	return out
}

func namesOf(h desired.Host, seen observed.Host) []string {
	names := []string{h.PublicAddress, h.PrivateAddress, h.Hostname, seen.Hostname}
	names = append(names, h.IPv6Addresses...)
	return append(names, seen.Addresses...)
}

func (r *Run) close() {
	r.state.Lock()
	defer r.state.Unlock()
	if r.state.client != nil {
		r.state.stopApprovals()
		r.state.client.Close()
	}
}
