package engine

import (
	"context"
	"io"
	"net/url"
	"path/filepath"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/record"
	"kubeone/internal/observed"
	"kubeone/internal/support"
)

// recordTimeout bounds reading the history for a bundle.
const recordTimeout = 10 * time.Second

// Support writes a support bundle about what a look saw: the documents of the caller, and what hosts, API and this machine
// know besides. Documents makes those that need the history, which is nil where it cannot be read. Secrets are values that
// must not be in the bundle, besides the manifest's. It returns what is missing.
func (e *Engine) Support(ctx context.Context, w io.Writer, l Look, documents func([]record.Run) ([]support.Document, error), secrets []string) ([]support.Missing, error) {
	in := support.Input{
		Cluster: e.want.Name, Now: e.opt.Now, Hosts: map[string]support.Host{}, Silent: map[string]string{}, NoAPI: noAPI(l.Result),
		Secrets: append(e.secrets(), secrets...), Parallel: e.opt.Parallel,
	}
	for _, h := range e.want.Hosts() {
		if seen := l.Result.World.Hosts[h.ID]; seen.Reach == observed.Reached {
			in.Hosts[l.Plan.Hosts[h.ID]] = e.hosts[h.ID]
		} else {
			in.Silent[l.Plan.Hosts[h.ID]] = seen.Problem
		}
	}
	if dir, err := e.StateDir(); err == nil {
		in.Journals = filepath.Join(dir, "journal")
	}
	var runs []record.Run
	if in.NoAPI == "" {
		client, err := cluster.Connect(*l.Result.Access)
		if err == nil {
			defer client.Close()
			in.Kubernetes = client.Kubernetes
			within, cancel := context.WithTimeout(ctx, recordTimeout)
			runs, _ = history(within, client, l.Result.World) // then the bundle has none, as if there were none
			cancel()
		} else {
			in.NoAPI = err.Error()
		}
	}
	var err error
	if in.Documents, err = documents(runs); err != nil {
		return nil, err
	}
	return support.Write(ctx, w, in)
}

// secrets are the manifest's values that nobody else may see.
func (e *Engine) secrets() []string {
	s := e.loaded.Secrets
	out := append(CredentialsOf(s.HTTPProxy), CredentialsOf(s.HTTPSProxy)...)
	for _, r := range s.Registries {
		out = append(out, r.Password, r.Auth, r.IdentityToken)
	}
	for _, h := range s.Helm {
		out = append(out, h.Password)
	}
	return out
}

// CredentialsOf are the password in a URL, as it is written there and as it is meant, and the user where there is no
// password, since that is a token then.
func CredentialsOf(raw string) []string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return nil
	}
	if password, has := u.User.Password(); has {
		return []string{password, url.PathEscape(password)}
	}
	return []string{u.User.Username()}
}
