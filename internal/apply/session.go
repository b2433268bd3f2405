package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"strconv"
	"sync"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/jointoken"
	"kubeone/internal/host"
	"kubeone/internal/keys/authority"
	"kubeone/internal/keys/encryption"
	"kubeone/internal/model/nodename"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/script"
)

// session holds what a run creates and learns: secrets, which stay in memory, and the connection to the API.
type session struct {
	state struct {
		sync.Mutex
		tokens        map[string]joinToken // by host ID
		tokenIDs      []string             // of all tokens that the run created
		client        API
		stopApprovals context.CancelFunc
		madeKeys      map[string]encryption.Key // by name: encryption keys that this run created
		madePairs     map[string]authority.Pair // by authority: keys that this run created
	}
}

// joinToken is a token for the join of one host.
type joinToken struct {
	text, id string
	made     time.Time
}

// secretsFor returns the secret files for the stage of a step, by name.
func (r *Run) secretsFor(ctx context.Context, s plan.Step) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, secret := range s.Intent.Secrets() {
		files, err := r.secretFiles(ctx, s, secret)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, files)
	}
	return out, nil
}

// secretFiles returns the files that contain one secret of a step, by name.
func (r *Run) secretFiles(ctx context.Context, s plan.Step, secret step.Secret) (map[string][]byte, error) {
	switch secret {
	case step.NewTokenSecret:
		return map[string][]byte{script.TokenFile: []byte(r.initToken())}, nil
	case step.TokenSecret:
		token, err := r.joinToken(ctx, s.Host)
		return map[string][]byte{script.TokenFile: []byte(token)}, err
	case step.DiscoverySecret:
		discovery, err := r.discoveryKubeconfig()
		return map[string][]byte{script.DiscoveryFile: discovery}, err
	case step.PKISecret:
		pki, err := r.readPKI(ctx, step.ParamsOf[step.CopyPKIParams](s.Intent).Peer)
		return map[string][]byte{script.PKIFile: pki}, err
	case step.CredentialsSecret:
		return r.credentialFiles()
	case step.EncryptionSecret:
		config, err := r.encryptionConfig(ctx, s)
		if err != nil || config == nil {
			return nil, err
		}
		return map[string][]byte{script.EncryptionFile: config.Text()}, nil
	case step.RotationSecret:
		return r.rotationFiles(ctx, s)
	case step.BackupSecret:
		return r.Copy.secretFiles()
	case step.ComponentSecret:
		return r.Files, nil
	}
	return nil, fmt.Errorf("unknown secret %q", secret)
}

// initToken returns a token for kubeadm init, which requires one. The token is never used.
func (r *Run) initToken() string {
	token, id := jointoken.New()
	r.state.Lock()
	defer r.state.Unlock()
	r.state.tokenIDs = append(r.state.tokenIDs, id)
	return token
}

// joinToken returns a token that only this host can join with. It reuses the token that this run created earlier,
// unless that is older than TokenAge.
func (r *Run) joinToken(ctx context.Context, id string) (string, error) {
	r.state.Lock()
	known := r.state.tokens[id]
	r.state.Unlock()
	if known.text != "" && r.Now().Sub(known.made) < TokenAge {
		return known.text, nil
	}
	client, err := r.apiClient() //nolint:contextcheck // it outlives the step
	if err != nil {
		return "", err
	}
	text, tokenID, err := client.CreateJoinToken(ctx, r.RunID, r.nameClaim(id), jointoken.MaxTTL)
	if err != nil {
		return "", err
	}
	r.state.Lock()
	defer r.state.Unlock()
	if r.state.tokens == nil {
		r.state.tokens = map[string]joinToken{}
	}
	r.state.tokens[id] = joinToken{text, tokenID, r.Now()}
	r.state.tokenIDs = append(r.state.tokenIDs, tokenID)
	return text, nil
}

// revokeToken revokes the join token that a step has used. If the API does not answer, the token is revoked at the end
// of the run, or expires.
func (r *Run) revokeToken(ctx context.Context, s plan.Step) {
	r.state.Lock()
	token, had := r.state.tokens[s.Host]
	delete(r.state.tokens, s.Host)
	client := r.state.client
	r.state.Unlock()
	if had && client != nil {
		_ = client.RevokeJoinToken(ctx, token.id)
	}
}

// discoveryKubeconfig returns the kubeconfig with which a joining host verifies the cluster.
func (r *Run) discoveryKubeconfig() ([]byte, error) {
	r.state.Lock()
	defer r.state.Unlock()
	if r.Access == nil {
		return nil, errors.New("the API of the cluster cannot be reached, so its CA is unknown")
	}
	return r.Access.Discovery(r.Want.Endpoint.URL())
}

// readPKI reads the CAs and service-account keys of a control-plane host into memory, as a tar. The tar includes a note
// of keys that must still be dropped.
func (r *Run) readPKI(ctx context.Context, from string) ([]byte, error) {
	h, ok := r.Hosts[from]
	if !ok {
		return nil, fmt.Errorf("the host that has the CAs (%s) was not reached", from)
	}
	const read = "note=" + script.RotationFile + `
set -- ca.crt ca.key sa.pub sa.key front-proxy-ca.crt front-proxy-ca.key etcd/ca.crt etcd/ca.key
[ ! -f /etc/kubernetes/pki/ca-succession.crt ] || set -- "$@" ca-succession.crt
[ ! -f "$note" ] || set -- "$@" -C "${note%/*}" "${note##*/}"
tar -C /etc/kubernetes/pki -cf - "$@"`
	res, err := h.Run(ctx, host.Cmd{Name: "read the CAs", Script: read, Secret: true})
	if err != nil {
		return nil, err
	}
	files, err := authority.ReadArchive(res.Stdout)
	if err != nil {
		return nil, fmt.Errorf("%s: read the CAs: %w", h.Name(), err)
	}
	authority.Agree(files)
	note := path.Base(script.RotationFile)
	if files[note] = authority.RotationNoteForCopy(files[note]); len(files[note]) == 0 {
		delete(files, note)
	}
	return authority.WriteArchive(files, r.Now())
}

// afterSuccess updates the session after a step has succeeded: it opens access to a new cluster and revokes a used
// token.
func (r *Run) afterSuccess(ctx context.Context, s plan.Step) error {
	r.revokeToken(ctx, s)
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
	r.Access = &cluster.Access{Kubeconfig: res.Stdout, Via: r.apiEndpoints(s.Host)}
	return nil
}

// apiEndpoints returns the API endpoints of all control-plane hosts, the given host first.
func (r *Run) apiEndpoints(first string) []cluster.Endpoint {
	out := []cluster.Endpoint{r.endpointOf(first)}
	for _, h := range r.Want.ControlPlane {
		if _, ok := r.Hosts[h.ID]; ok && h.ID != first {
			out = append(out, r.endpointOf(h.ID))
		}
	}
	return out
}

func (r *Run) endpointOf(id string) cluster.Endpoint {
	return cluster.Endpoint{
		ID:      r.displayName(id),
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(script.APIPort)),
		Dial:    r.Hosts[id].Dial,
	}
}

// apiClient returns the connection to the API. The first call also starts approving kubelets' certificates.
func (r *Run) apiClient() (API, error) {
	r.state.Lock()
	defer r.state.Unlock()
	if r.state.client != nil {
		return r.state.client, nil
	}
	client, err := r.Connect.connectAPI(r.Access)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.state.client, r.state.stopApprovals = client, cancel
	go client.ServeApprovals(ctx, r.expectedNodes(), r.reportDecision)
	return client, nil
}

// Approve starts approving kubelet certificates for the hosts in the manifest, until end is called. Do approves them
// itself; Approve is for callers that only wait for the steps of an earlier run.
func (r *Run) Approve() (end func()) {
	_, _ = r.apiClient() // without an API there are no requests
	return r.close
}

// reportDecision emits a warning about a certificate request that was not approved. A run for workers only ignores
// requests of other hosts, because it knows nothing about them.
func (r *Run) reportDecision(d certificates.Decision) {
	_, ours := r.expectedNodes()[d.Node]
	if !d.Approved && (ours || len(r.Want.ControlPlane) > 0) {
		r.emitEvent(Event{
			Type: Warning, Host: d.Node, Line: "certificate request " + d.Request + " was not approved: " + d.Reason,
		})
	}
}

// expectedNodes returns the Nodes that may have certificates, and their hosts. It trusts neither the name that a host
// reports nor what its kubelet writes into its Node. A Node with the name of another host does not belong to this host.
func (r *Run) expectedNodes() certificates.Expected {
	out, names := certificates.Expected{}, nodename.Of(r.Want, r.World.API)
	for _, h := range r.Want.Hosts() {
		claim := names.Claim(h, r.Plan.Nodes[h.ID])
		if claim.Check() == nil {
			out[claim.Node] = claim
		}
	}
	return out
}

// nameClaim returns the host's claim to the name of its Node.
func (r *Run) nameClaim(id string) nodename.Claim {
	h, _ := r.Want.Host(id)
	return nodename.Of(r.Want, r.World.API).Claim(h, r.Plan.Nodes[id])
}

func (r *Run) close() {
	r.state.Lock()
	defer r.state.Unlock()
	if r.state.client != nil {
		r.state.stopApprovals()
		r.state.client.Close()
	}
}
