package workspace

import (
	"context"
	"io"
	"net/url"
	"time"

	"kubeone/internal/cluster"
	"kubeone/internal/cluster/record"
	"kubeone/internal/engine"
	"kubeone/internal/model/observed"
	"kubeone/internal/workspace/support"
)

// recordTimeout is the timeout for reading the history for a support bundle.
const recordTimeout = 10 * time.Second

// Support writes a support bundle about a proposal: the caller's documents, and data from the hosts, the API server and
// this machine. documents returns the documents that include the history, which is nil if it cannot be read. secrets
// lists values that must not be in the bundle, in addition to those in the manifest. Support returns what is missing in
// the bundle.
func (w *Workspace) Support(
	ctx context.Context, out io.Writer, p engine.Proposal, documents func([]record.Run) ([]support.Document, error),
	secrets []string,
) ([]support.Missing, error) {
	in := support.Input{
		Cluster: w.want.Name, Now: w.opt.Now, NoAPI: engine.NoAPI(p.Observed), Journals: w.Journals(),
		Secrets: append(w.secretValues(), secrets...), Parallel: w.opt.Parallel,
	}
	in.Hosts, in.Unreachable = w.hostFolders(p)
	var runs []record.Run
	if in.NoAPI == "" {
		client, err := cluster.Connect(*p.Observed.Access)
		if err == nil {
			defer client.Close()
			in.Kubernetes = client.Kubernetes
			timeoutCtx, cancel := context.WithTimeout(ctx, recordTimeout)
			runs, _ = engine.Runs(timeoutCtx, client, p.Observed.World) // without it the bundle has no history
			cancel()
		} else {
			in.NoAPI = err.Error()
		}
	}
	var err error
	if in.Documents, err = documents(runs); err != nil {
		return nil, err
	}
	return support.Write(ctx, out, in)
}

// hostFolders returns the hosts that respond, and the reasons why others do not, by the name of their directory in a
// support bundle.
func (w *Workspace) hostFolders(p engine.Proposal) (hosts map[string]support.Host, unreachable map[string]string) {
	hosts, unreachable = map[string]support.Host{}, map[string]string{}
	folders := p.FileNames()
	for _, h := range p.Want.Hosts() {
		if seen := p.Observed.World.Hosts[h.ID]; seen.Reach == observed.Reached {
			hosts[folders[h.ID]] = w.Engine.HostOf(p, h.ID)
		} else {
			unreachable[folders[h.ID]] = seen.Problem
		}
	}
	return hosts, unreachable
}

// secretValues returns the secret values in the manifest and the credentials file.
func (w *Workspace) secretValues() []string {
	s := w.loaded.Secrets
	out := append(CredentialsOf(s.HTTPProxy), CredentialsOf(s.HTTPSProxy)...)
	for _, r := range s.Registries {
		out = append(out, registrySecrets(r)...)
	}
	for _, h := range s.Helm {
		out = append(out, h.Password)
	}
	return out
}

// CredentialsOf returns the password in a URL, decoded and encoded. Without a password, it returns the user name, which
// is then a token.
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
