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

// hostAuthority is the state of one authority on a control-plane host, including private keys.
type hostAuthority struct {
	observed.Authority

	public            []byte // what the host trusts
	key               []byte
	nextPublic, nextK []byte
	succession        []byte // of the cluster's CA
}

// rotationFiles returns the files that the host of the step needs for the next phase of a rotation. It combines the
// current keys of all control-plane hosts in memory. It returns an error if the planned phase is no longer the next
// one.
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

// rotationHosts converts the hosts of an authority to the type that package rotation uses.
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

// authorityHost is a control-plane host and the state of each authority on it, by name.
type authorityHost struct {
	id          string
	authorities map[string]hostAuthority
}

var errPhaseChanged = errors.New("the hosts are in a different phase of the rotation than planned; plan again")

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
		return errPhaseChanged
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

// successionFile returns the succession file for a control-plane host. In it, the current CA signs the next one, so
// that clients that know only the current CA can trust the next one.
func (r *Run) successionFile(has []authorityHost, next authority.Pair) ([]byte, error) {
	signer := ""
	for _, h := range has {
		a := h.authorities[observed.ClusterCA]
		if a.Signer() == next.ID() {
			continue // this host already signs with the next key
		}
		signer = a.Signer()
		if slices.Contains(authority.Followers(signer, a.succession), next.ID()) {
			return a.succession, nil
		}
	}
	if signer == "" { // all hosts sign with the next key: copy the file from one that has it
		for _, h := range has {
			if text := h.authorities[observed.ClusterCA].succession; text != nil {
				return text, nil
			}
		}
		return nil, errPhaseChanged
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

// clusterCAs returns the cluster CA certificates for workers and joining hosts. With onlyNew, it returns only the new
// CA, once all control-plane hosts sign with it. Otherwise it returns every CA that any control-plane host trusts, once
// all of them know the next CA. Before that, it returns an error.
func clusterCAs(has []authorityHost, onlyNew bool) ([]byte, error) {
	const name = observed.ClusterCA
	hosts := rotationHosts(has)
	wanted, phase := rotation.Trusted(hosts, name), rotation.Decide(hosts, []string{name}, false).Phase
	if onlyNew {
		wanted = []string{rotation.Goal(hosts, name)}
	}
	if onlyNew && phase != rotation.Forget && phase != rotation.Settled || phase == rotation.Learn {
		return nil, errPhaseChanged
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

// publishCA publishes the cluster CAs for joining hosts. If there is more than one, it waits until pods have them.
func (r *Run) publishCA(ctx context.Context, client API, s plan.Step) error {
	has, err := r.readAuthorities(ctx)
	if err != nil {
		return err
	}
	onlyNew := step.ParamsOf[step.PublishCAParams](s.Intent).Alone
	text, err := clusterCAs(has, onlyNew)
	if err != nil {
		return err
	}
	if err := client.PublishCAs(ctx, text); err != nil || onlyNew {
		return err
	}
	return client.AwaitRootCAs(ctx, authority.Keys(text))
}

// checkPodsTrustCA returns an error if running pods do not trust the CA that the cluster is about to use.
func (r *Run) checkPodsTrustCA(ctx context.Context, client API, _ plan.Step) error {
	has, err := r.readAuthorities(ctx)
	if err != nil {
		return err
	}
	text, err := clusterCAs(has, false)
	if err != nil {
		return err
	}
	unaware, err := client.UnawarePods(ctx, authority.Keys(text))
	if err != nil || len(unaware) == 0 {
		return err
	}
	const most = 10
	return fmt.Errorf("%s started before the next cluster CA was published and would not trust the API servers: "+
		"restart them (kubectl rollout restart), issue new kubeconfigs (kubeone kubeconfig), then "+
		"run kubeone certificates rotate-ca --resume", problem.List(problem.Some(unaware, most)))
}

// findPair returns the key pair with that key ID from the first host that has it, as its signing key or its next key.
// It skips hosts on which an exchange of keys was interrupted.
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

// newPair returns the new key pair for that authority, and creates it at the first call. A retried step therefore gets
// the same pair.
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
		if a.Signer() != signer || a.Next != "" || a.BegunPhase == string(rotation.Use) {
			return nil, errPhaseChanged
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

// trimExtensionCAs removes the CAs that the API servers no longer trust from the trust of extension API servers.
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

// droppedKeys returns the keys that are about to lose trust, one per line, by the ID that tokens use.
func droppedKeys(has []authorityHost) ([]byte, error) {
	others, err := otherTokenKeys(has)
	var out strings.Builder
	for _, key := range others {
		out.WriteString(authority.TokenKeyID(key) + "\n")
	}
	return []byte(out.String()), err
}

// readAuthorities reads the authorities of all control-plane hosts that are members. A host that cannot be read is an
// error, because every host must trust the keys of all others.
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
