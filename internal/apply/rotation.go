package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubeone/internal/decide/rotation"
	"kubeone/internal/host"
	"kubeone/internal/keys/authority"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/script"
)

// hostAuthority is what a control-plane host has of one authority, its private keys included.
type hostAuthority struct {
	observed.Authority

	public            []byte // what it trusts
	key               []byte
	nextPublic, nextK []byte
	succession        []byte // of the cluster's CA
}

// rotationFiles are the files by which the step's host does its part of a rotation, put together in memory from what
// all control-plane hosts have at this moment. A phase that is not the next one any more is an error.
func (r *Run) rotationFiles(ctx context.Context, s plan.Step) (map[string][]byte, error) {
	has, err := r.readAuthorities(ctx)
	if err != nil {
		return nil, err
	}
	if s.Intent.Kind == step.RenewTokens {
		dropped, err := droppedKeys(has)
		return map[string][]byte{script.TokenKeysFile: dropped}, err
	}
	files := map[string][]byte{}
	if s.Intent.Kind == step.LearnCA || s.Intent.Kind == step.ForgetCA {
		text, err := clusterCAs(has, s.Intent.Kind == step.ForgetCA)
		if err != nil {
			return nil, err
		}
		files[authority.FilesOf(observed.ClusterCA).Public] = text
		text, err = authority.WriteArchive(files, r.Now())
		return map[string][]byte{script.AuthoritiesFile: text}, err
	}
	p := step.ParamsOf[step.RotateParams](s.Intent)
	for _, name := range p.Authorities {
		if err := r.addRotationFiles(files, has, s.Host, name, p); err != nil {
			return nil, fmt.Errorf("rotate the key of %s: %w", name, err)
		}
	}
	text, err := authority.WriteArchive(files, r.Now())
	return map[string][]byte{script.AuthoritiesFile: text}, err
}

// rotationHosts are the hosts of an authority, for the rules.
func rotationHosts(has []authorityHost) []rotation.Host {
	out := make([]rotation.Host, 0, len(has))
	for _, h := range has {
		all := map[string]observed.Authority{}
		for name, a := range h.authorities {
			all[name] = a.Authority
		}
		out = append(out, rotation.Host{ID: h.id, Authorities: all})
	}
	return out
}

// authorityHost is a control-plane host, and what it has by the name of the authority.
type authorityHost struct {
	id          string
	authorities map[string]hostAuthority
}

var errNotNext = errors.New("the hosts are in another phase than when this was planned: plan again")

// addRotationFiles adds the files of one authority.
func (r *Run) addRotationFiles(files map[string][]byte, has []authorityHost, id, name string,
	p step.RotateParams) error {
	hosts, at := rotationHosts(has), authority.FilesOf(name)
	var own hostAuthority
	var all authority.Public
	for _, h := range has {
		public, err := authority.ParsePublic(h.authorities[name].public)
		if err != nil {
			return fmt.Errorf("%s: %w", r.displayName(h.id), err)
		}
		all = all.With(public)
		if h.id == id {
			own = h.authorities[name]
		}
	}
	fresh := slices.Contains(p.NewKeys, name) && !rotation.Given(hosts, name)
	next := rotation.Decide(hosts, []string{name}, fresh)
	if next.Phase != p.Phase && next.Phase != rotation.Settled || fresh != (len(next.New) > 0) {
		return errNotNext
	}
	goal, pair := rotation.Goal(hosts, name), authority.Pair{}
	var err error
	switch {
	case fresh:
		pair, err = r.newPair(name, own.public)
		goal = pair.ID()
	case p.Phase != rotation.Forget:
		pair, err = pairOf(has, name, goal)
	}
	if err != nil {
		return err
	}
	if pair.KeyText() != nil {
		all = all.With(pair.Public)
	}
	then := rotation.After(own.Authority, p.Phase, goal, rotation.Signers(hosts, name))
	trusted, err := all.Only(then.Trusted...)
	if err != nil {
		return err
	}
	files[at.Public] = trusted.Text()
	if name == observed.ClusterCA && p.Phase == rotation.Learn {
		if files[authority.Succession], err = r.successionFile(has, pair); err != nil {
			return err
		}
	}
	if p.Phase == rotation.Use {
		files[at.Key] = pair.KeyText()
	}
	if p.Phase == rotation.Learn && then.Next == goal {
		files["next/"+at.Next()], files["next/"+at.NextKey()] = pair.Public.Text(), pair.KeyText()
	}
	return nil
}

// successionFile is what is to be on a control-plane host for those who know the cluster by its present CA, as that
// one's key vouches for the next.
func (r *Run) successionFile(has []authorityHost, next authority.Pair) ([]byte, error) {
	signer := ""
	for _, h := range has {
		a := h.authorities[observed.ClusterCA]
		if a.Signer() == next.ID() {
			continue // it signs with it already
		}
		signer = a.Signer()
		if slices.Contains(authority.Followers(signer, a.succession), next.ID()) {
			return a.succession, nil
		}
	}
	if signer == "" { // all that is left is to tell a host what the others have
		for _, h := range has {
			if text := h.authorities[observed.ClusterCA].succession; text != nil {
				return text, nil
			}
		}
		return nil, errNotNext
	}
	former, err := pairOf(has, observed.ClusterCA, signer)
	if err != nil {
		return nil, err
	}
	word, err := authority.Vouch(next, former)
	if err != nil {
		return nil, err
	}
	return authority.Succeeded(has[0].authorities[observed.ClusterCA].succession, former.Public, word), nil
}

// clusterCAs are the certificates of the cluster's CAs that workers, and who joins, are to trust: all that any
// control-plane host trusts, once all of them have learnt of the next one; or the new one alone, once all of them sign
// with it. At another time it is an error.
func clusterCAs(has []authorityHost, alone bool) ([]byte, error) {
	const name = observed.ClusterCA
	hosts := rotationHosts(has)
	wanted, phase := rotation.Trusted(hosts, name), rotation.Decide(hosts, []string{name}, false).Phase
	if alone {
		wanted = []string{rotation.Goal(hosts, name)}
	}
	if alone && phase != rotation.Forget && phase != rotation.Settled || phase == rotation.Learn {
		return nil, errNotNext
	}
	var all authority.Public
	for _, h := range has {
		public, err := authority.ParsePublic(h.authorities[name].public)
		if err != nil {
			return nil, err
		}
		all = all.With(public)
	}
	trusted, err := all.Only(wanted...)
	return trusted.Text(), err
}

// publishCA has who joins know the cluster's CAs, and pods, where they are more than one.
func (r *Run) publishCA(ctx context.Context, client API, s plan.Step) error {
	has, err := r.readAuthorities(ctx)
	if err != nil {
		return err
	}
	alone := step.ParamsOf[step.PublishCAParams](s.Intent).Alone
	text, err := clusterCAs(has, alone)
	if err != nil {
		return err
	}
	if err := client.NameCAs(ctx, text); err != nil || alone {
		return err
	}
	return client.AwaitRootCAs(ctx, authority.Keys(text))
}

// podsTrustCA fails where pods know the cluster by fewer CAs than it is about to have.
func (r *Run) podsTrustCA(ctx context.Context, client API, _ plan.Step) error {
	has, err := r.readAuthorities(ctx)
	if err != nil {
		return err
	}
	text, err := clusterCAs(has, false)
	if err != nil {
		return err
	}
	unaware, err := client.Unaware(ctx, authority.Keys(text))
	if err != nil || len(unaware) == 0 {
		return err
	}
	const most = 10
	return fmt.Errorf("%s began before they could know the next CA of the cluster, and would not believe the API "+
		"servers: start them anew (kubectl rollout restart), give people kubeconfigs (kubeone kubeconfig), and then "+
		"run kubeone certificates rotate-ca --resume", problem.List(problem.Some(unaware, most)))
}

// pairOf is the key pair of that name, from the first host that has it: one on which no phase has been cut off that
// exchanges it, or that was given it to sign with later.
func pairOf(has []authorityHost, name, key string) (authority.Pair, error) {
	for _, h := range has {
		a := h.authorities[name]
		if a.Next == key {
			if pair, err := authority.ParsePair(a.nextPublic, a.nextK); err == nil && pair.ID() == key {
				return pair, nil
			}
		}
		if a.Signer() == key {
			if pair, err := authority.ParsePair(a.public, a.key); err == nil {
				return pair, nil
			}
		}
	}
	return authority.Pair{}, fmt.Errorf("no control-plane host has the private key of %s", key)
}

// newPair is the key of that authority that this run makes. A step that is tried again gets the same.
func (r *Run) newPair(name string, public []byte) (authority.Pair, error) {
	r.state.Lock()
	defer r.state.Unlock()
	if pair, made := r.state.madePairs[name]; made {
		return pair, nil
	}
	pair, err := authority.New(r.Now(), public)
	if err != nil {
		return pair, err
	}
	if r.state.madePairs == nil {
		r.state.madePairs = map[string]authority.Pair{}
	}
	r.state.madePairs[name] = pair
	return pair, nil
}

// otherTokenKeys are the keys that are trusted besides the one that signs tokens on all control-plane hosts.
func otherTokenKeys(has []authorityHost) ([]string, error) {
	signer, others := "", []string(nil)
	for _, h := range has {
		a := h.authorities[observed.ServiceAccounts]
		if signer == "" {
			signer = a.Signer()
		}
		if a.Signer() != signer || a.Next != "" || a.Begun == string(rotation.Use) {
			return nil, errNotNext
		}
		for _, key := range a.Trusted {
			if key != signer && !slices.Contains(others, key) {
				others = append(others, key)
			}
		}
	}
	return others, nil
}

// renewTokenSecrets has tokens in Secrets made anew that are signed by a key which is about to be trusted no more.
func (r *Run) renewTokenSecrets(ctx context.Context, client API, s plan.Step) error {
	has, err := r.readAuthorities(ctx)
	if err != nil {
		return err
	}
	others, err := otherTokenKeys(has)
	if err != nil {
		return err
	}
	var dropped []string
	for _, key := range others {
		dropped = append(dropped, authority.TokenKeyID(key))
	}
	return client.RenewTokenSecrets(ctx, dropped, func(namespace, name string) {
		r.emitEvent(Event{Type: StepOutput, Step: s.ID, Line: "Secret " + namespace + "/" + name + " has a new token"})
	})
}

// trimExtensionCAs has extension API servers trust what all API servers trust, and no more.
func (r *Run) trimExtensionCAs(ctx context.Context, client API, s plan.Step) error {
	name := observed.FrontProxyCA
	if s.Intent.Kind == step.TrimClientCA {
		name = observed.ClusterCA
	}
	has, err := r.readAuthorities(ctx)
	if err != nil {
		return err
	}
	var trusted []string
	for _, h := range has {
		trusted = append(trusted, h.authorities[name].Trusted...)
	}
	return client.TrimExtensionCAs(ctx, name, trusted)
}

// droppedKeys names the keys whose tokens are about to be refused, as tokens name them, one a line.
func droppedKeys(has []authorityHost) ([]byte, error) {
	others, err := otherTokenKeys(has)
	var out strings.Builder
	for _, key := range others {
		out.WriteString(authority.TokenKeyID(key) + "\n")
	}
	return []byte(out.String()), err
}

// readAuthorities reads what all control-plane hosts have that are members. One that cannot be read is an error:
// whatever another one shows, it would have to trust.
func (r *Run) readAuthorities(ctx context.Context) ([]authorityHost, error) {
	var out []authorityHost
	for _, want := range r.Want.ControlPlane {
		h := r.Hosts[want.ID]
		if h == nil {
			return nil, fmt.Errorf("%s was not reached, so that nobody knows whom it trusts", r.displayName(want.ID))
		}
		all, err := readAuthority(ctx, h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.displayName(want.ID), err)
		}
		if all != nil {
			out = append(out, authorityHost{want.ID, all})
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no control-plane host is a member of the cluster")
	}
	return out, nil
}

// readAuthority reads what one host has; nil where it is no member.
func readAuthority(ctx context.Context, h host.Host) (map[string]hostAuthority, error) {
	const read = `marker=$1 note=$2
grep -qs '^complete=yes$' "$marker" || exit 0
cd /etc/kubernetes/pki
set -- "$note"
for file in ca.crt ca.key ca-succession.crt etcd/ca.crt etcd/ca.key front-proxy-ca.crt front-proxy-ca.key sa.pub \
	sa.key next/*.*; do
	[ ! -f "$file" ] || set -- "$@" "$file"
done
[ -f "$1" ] || shift
tar -P -cf - "$@"`
	res, err := h.Run(ctx, host.Cmd{
		Name: "read the keys of authorities", Script: read, Args: []string{script.MarkerFile, script.RotationFile},
		Secret: true, Timeout: keysWithin,
	})
	if err != nil || len(res.Stdout) == 0 {
		return nil, err
	}
	files, err := authority.ReadArchive(res.Stdout)
	if err != nil {
		return nil, err
	}
	out := map[string]hostAuthority{}
	for _, name := range observed.Authorities() {
		at := authority.FilesOf(name)
		a := hostAuthority{
			public: files[at.Public], key: files[at.Key],
			nextPublic: files["next/"+at.Next()], nextK: files["next/"+at.NextKey()],
			succession: files[authority.Succession],
		}
		begun := strings.Split(string(files[script.RotationFile]), "\n")
		a.Authority = authority.Of(name, a.public, a.nextPublic, begun)
		out[name] = a
	}
	return out, nil
}
