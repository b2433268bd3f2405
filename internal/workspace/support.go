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

// recordTimeout limits reading the history for a bundle.
const recordTimeout = 10 * time.Second

// Support writes a support bundle about what a proposal saw: the caller's documents, and what hosts, API and this
// machine know besides. Documents returns those that need the history, which is nil if it cannot be read. Secrets are
// values that must not be in the bundle, in addition to the manifest's. It returns what is missing.
func (w *Workspace) Support(
	ctx context.Context, out io.Writer, p engine.Proposal, documents func([]record.Run) ([]support.Document, error),
	secrets []string,
) ([]support.Missing, error) {
	in := support.Input{
		Cluster: w.want.Name, Now: w.opt.Now, NoAPI: engine.NoAPI(p.Observed), Journals: w.Journals(),
		Secrets: append(w.secretValues(), secrets...), Parallel: w.opt.Parallel,
	}
	in.Hosts, in.Silent = w.hostFolders(p)
	var runs []record.Run
	if in.NoAPI == "" {
		client, err := cluster.Connect(*p.Observed.Access)
		if err == nil {
			defer client.Close()
			in.Kubernetes = client.Kubernetes
			within, cancel := context.WithTimeout(ctx, recordTimeout)
			runs, _ = engine.Runs(within, client, p.Observed.World) // without it the bundle has no history
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

// hostFolders returns the hosts that answer, and why others do not, by the names of their directories in a bundle.
func (w *Workspace) hostFolders(p engine.Proposal) (hosts map[string]support.Host, silent map[string]string) {
	hosts, silent = map[string]support.Host{}, map[string]string{}
	folders := p.FileNames()
	for _, h := range p.Want.Hosts() {
		if seen := p.Observed.World.Hosts[h.ID]; seen.Reach == observed.Reached {
			hosts[folders[h.ID]] = w.Engine.HostOf(p, h.ID)
		} else {
			silent[folders[h.ID]] = seen.Problem
		}
	}
	return hosts, silent
}

// secretValues returns the manifest's secret values.
func (w *Workspace) secretValues() []string {
	s := w.loaded.Secrets
	out := append(CredentialsOf(s.HTTPProxy), CredentialsOf(s.HTTPSProxy)...)
	for _, r := range s.Registries {
		out = append(out, secretsOf(r)...)
	}
	for _, h := range s.Helm {
		out = append(out, h.Password)
	}
	return out
}

// CredentialsOf returns the password in a URL, as written and decoded; without a password, the user, which is then a
// token.
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
