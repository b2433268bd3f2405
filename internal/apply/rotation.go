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

// hostAuthority is a control-plane host's state of one authority, including private keys.
type hostAuthority struct {
	observed.Authority

	public            []byte // what the host trusts
	key               []byte
	nextPublic, nextK []byte
	succession        []byte // of the cluster's CA
}

// rotationFiles returns the files for the part of the step's host in a rotation. It combines in memory what all
// control-plane hosts have now. A phase that is no longer the next one is an error.
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

// rotationHosts converts the hosts of an authority for the package rotation.
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

// authorityHost is a control-plane host with its state of the authorities, by name.
type authorityHost struct {
	id          string
	authorities map[string]hostAuthority
}

var errNotNext = errors.New("the hosts are in a different phase than planned; plan again")

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
		pair, err = findPair(has, name, goal)
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

// successionFile returns the succession file for a control-plane host. It is for readers that know the cluster by its
// present CA, whose key signs a statement for the next CA.
func (r *Run) successionFile(has []authorityHost, next authority.Pair) ([]byte, error) {
	signer := ""
	for _, h := range has {
		a := h.authorities[observed.ClusterCA]
		if a.Signer() == next.ID() {
			continue // it signs with the next key already
		}
		signer = a.Signer()
		if slices.Contains(authority.Followers(signer, a.succession), next.ID()) {
			return a.succession, nil
		}
	}
	if signer == "" { // only this host still lacks the file of the others
		for _, h := range has {
			if text := h.authorities[observed.ClusterCA].succession; text != nil {
				return text, nil
			}
		}
		return nil, errNotNext
	}
	former, err := findPair(has, observed.ClusterCA, signer)
	if err != nil {
		return nil, err
	}
	word, err := authority.SignFollower(next, former)
	if err != nil {
		return nil, err
	}
	return authority.AddSuccession(has[0].authorities[observed.ClusterCA].succession, former.Public, word), nil
}

// clusterCAs returns the cluster's CA certificates for workers and joining hosts. Once all control-plane hosts know
// the next CA, this is everything that any of them trusts. With alone, once all of them sign with the new CA, it is
// only that one. At any other time it is an error.
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

// publishCA publishes the cluster's CAs to joining hosts and, if there is more than one, waits until pods have them.
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

// checkPodsTrustCA fails while running pods lack a CA that the cluster is about to use.
func (r *Run) checkPodsTrustCA(ctx context.Context, client API, _ plan.Step) error {
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
	return fmt.Errorf("%s started before the next cluster CA was published and would not trust the API servers: "+
		"restart them (kubectl rollout restart), issue new kubeconfigs (kubeone kubeconfig), then "+
		"run kubeone certificates rotate-ca --resume", problem.List(problem.Some(unaware, most)))
}

// findPair returns the key pair with that key ID, from the first host that has it: signing with it and not in a phase
// that was cut off while exchanging it, or holding it as the next key.
func findPair(has []authorityHost, name, key string) (authority.Pair, error) {
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

// newPair returns the key that this run makes for that authority. A retried step gets the same key.
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

// otherTokenKeys returns the trusted token keys other than the one that signs on all control-plane hosts.
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

// renewTokenSecrets renews tokens in Secrets whose signing key is about to lose trust.
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

// trimExtensionCAs makes extension API servers trust only what the API servers trust.
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

// droppedKeys returns the IDs in tokens of the keys about to lose trust, one a line.
func droppedKeys(has []authorityHost) ([]byte, error) {
	others, err := otherTokenKeys(has)
	var out strings.Builder
	for _, key := range others {
		out.WriteString(authority.TokenKeyID(key) + "\n")
	}
	return []byte(out.String()), err
}

// readAuthorities reads the authorities of all control-plane hosts that are members. A host that cannot be read is an
// error, because it has to trust what the other hosts show.
func (r *Run) readAuthorities(ctx context.Context) ([]authorityHost, error) {
	var out []authorityHost
	for _, want := range r.Want.ControlPlane {
		h := r.Hosts[want.ID]
		if h == nil {
			return nil, fmt.Errorf("%s was not reached, so the CAs it trusts are unknown", r.displayName(want.ID))
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

// readAuthority reads the authorities of one host; nil if it is not a member.
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
		a.Authority = authority.Parse(name, a.public, a.nextPublic, begun)
		out[name] = a
	}
	return out, nil
}
