package apply

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"kubeone/internal/decide/atrest"
	"kubeone/internal/host"
	"kubeone/internal/keys/encryption"
	"kubeone/internal/model/observed"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/script"
)

// encryptionConfig is the configuration by which the step's host is to encrypt Secrets, with its keys, put together in
// memory from what the control-plane hosts have; nil where it is to have none. Only hosts whose keys are approved are
// asked.
func (r *Run) encryptionConfig(ctx context.Context, s plan.Step) (encryption.Config, error) {
	p := step.ParamsOf[step.EncryptParams](s.Intent)
	switch {
	case p.Phase != atrest.Settled && len(p.Providers) == 0:
		return nil, nil
	case s.Intent.Kind == step.Init && !r.Want.EncryptSecrets:
		return nil, nil
	case s.Intent.Kind == step.Init:
		p = step.EncryptParams{Providers: []string{atrest.FirstKey}, NewKey: atrest.FirstKey}
	}
	known, others, err := r.readKeys(ctx, s)
	if err != nil {
		return nil, err
	}
	if s.Intent.Kind == step.CopyPKI {
		if p.Providers = atrest.Join(others); len(p.Providers) == 0 {
			return nil, nil
		}
	}
	if p.NewKey != "" && !known.Has(p.NewKey) {
		key, err := r.newKey(p.NewKey)
		if err != nil {
			return nil, err
		}
		if err := known.Add("this run", encryption.Config{key}); err != nil {
			return nil, err
		}
	}
	return known.Config(p.Providers)
}

// newKey is the key of that name that this run makes. A step that is tried again gets the same.
func (r *Run) newKey(name string) (encryption.Key, error) {
	r.state.Lock()
	defer r.state.Unlock()
	if key, made := r.state.madeKeys[name]; made {
		return key, nil
	}
	key, err := encryption.NewKey(name, rand.Reader)
	if err != nil {
		return key, err
	}
	if r.state.madeKeys == nil {
		r.state.madeKeys = map[string]encryption.Key{}
	}
	r.state.madeKeys[name] = key
	return key, nil
}

// readKeys reads what the control-plane hosts have. For a key that is to be made every one of them must say that it has
// none of that name; otherwise it is enough that those which are members and can be reached are asked, and the host
// from which the CAs come, which is the first of those that a host which joins is to be like.
func (r *Run) readKeys(ctx context.Context, s plan.Step) (*encryption.Keyring, []atrest.Host, error) {
	known := &encryption.Keyring{}
	var others []atrest.Host
	peer := step.ParamsOf[step.CopyPKIParams](s.Intent).Peer
	makes := step.ParamsOf[step.EncryptParams](s.Intent).NewKey != ""
	for _, want := range r.Want.ControlPlane {
		if s.Intent.Kind == step.Init && want.ID != s.Host {
			continue // there is nobody else yet
		}
		has, err := readEncryption(ctx, r.Hosts[want.ID])
		own := want.ID == s.Host && !errors.Is(err, errKeysLost) && !errors.Is(err, errNotReached)
		switch {
		case err != nil && (makes || want.ID == peer || own):
			return nil, nil, fmt.Errorf("%s: %w", r.displayName(want.ID), err)
		case err != nil:
			continue // what those that answer have is enough to read all that is stored
		}
		if err := known.Add(r.displayName(want.ID), has.config); err != nil {
			return nil, nil, err
		}
		if has.member && want.ID != s.Host {
			others = addHost(others, want.ID, peer, has.config)
		}
	}
	return known, others, nil
}

// addHost adds a host, the peer before all others.
func addHost(others []atrest.Host, id, peer string, config encryption.Config) []atrest.Host {
	names := config.Names()
	if len(names) == 0 {
		names = []string{observed.Identity}
	}
	h := atrest.Host{ID: id, Next: names, Running: [][]string{names}, Same: true}
	if id == peer {
		return append([]atrest.Host{h}, others...)
	}
	return append(others, h)
}

// hostEncryption is what a host has.
type hostEncryption struct {
	member bool
	config encryption.Config // nil: none
}

var (
	// errKeysLost means that a host has lost its configuration, for which it may get it again.
	errKeysLost   = errors.New("its keys for Secrets are gone")
	errNotReached = errors.New("it was not reached, so that its keys for Secrets are not known")
)

// readEncryption reads the configuration with which the host's API server starts next. A host that is nil was not
// reached.
func readEncryption(ctx context.Context, h host.Host) (hostEncryption, error) {
	if h == nil {
		return hostEncryption{}, errNotReached
	}
	const read = `marker=$1 patch=$2
grep -qs '^complete=yes$' "$marker" && echo member
file=$(sed -n 's/^ *value: --encryption-provider-config=//p' "$patch" 2>/dev/null)
[ -n "$file" ] || exit 0
sum=${file##*/}
if [ "$(sha256sum 2>/dev/null <"$file")" = "${sum%.yaml}  -" ]; then echo config && cat "$file"; else echo lost; fi`
	res, err := h.Run(ctx, host.Cmd{
		Name: "read the keys for Secrets", Script: read, Args: []string{script.MarkerFile, script.EncryptionPatch},
		Secret: true, Timeout: keysWithin,
	})
	if err != nil {
		return hostEncryption{}, err
	}
	return parseEncryption(res.Stdout)
}

// parseEncryption reads what readEncryption's script prints.
func parseEncryption(out []byte) (hostEncryption, error) {
	rest, member := bytes.CutPrefix(out, []byte("member\n"))
	got := hostEncryption{member: member}
	text, there := bytes.CutPrefix(rest, []byte("config\n"))
	switch {
	case there:
		var err error
		got.config, err = encryption.Parse(text)
		return got, err
	case string(rest) == "lost\n":
		return got, errKeysLost
	case len(rest) > 0:
		return got, encryption.ErrFormat
	}
	return got, nil
}

// keysWithin is how long reading one host's keys may take.
const keysWithin = time.Minute

// rewriteSecrets has every Secret stored anew.
func (r *Run) rewriteSecrets(ctx context.Context, client API, s plan.Step) error {
	return client.RewriteSecrets(ctx, func(written int) {
		r.emitEvent(Event{Type: StepOutput, Step: s.ID, Line: fmt.Sprintf("%d Secrets written again", written)})
	})
}
