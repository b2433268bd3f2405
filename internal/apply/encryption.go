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

// encryptionConfig returns the encryption configuration for the host of the step, with its keys, or nil if the host
// needs none. It combines the keys of all control-plane hosts in memory. It reads only from hosts whose SSH host key is
// approved.
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

// newKey returns the key with that name, and creates it at the first call. A retried step therefore gets the same key.
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

// readKeys reads the encryption keys of the control-plane hosts. Before a new key is created, every host must answer,
// because no host may already have a key with that name. Otherwise only reachable members must answer, and the peer
// that provides the CAs. readKeys also returns the hosts that a joining host must match, the peer first.
func (r *Run) readKeys(ctx context.Context, s plan.Step) (*encryption.Keyring, []atrest.Host, error) {
	known := &encryption.Keyring{}
	var others []atrest.Host
	peer := step.ParamsOf[step.CopyPKIParams](s.Intent).Peer
	makes := step.ParamsOf[step.EncryptParams](s.Intent).NewKey != ""
	for _, want := range r.Want.ControlPlane {
		if s.Intent.Kind == step.Init && want.ID != s.Host {
			continue // there is no other member yet
		}
		has, err := readEncryption(ctx, r.Hosts[want.ID])
		own := want.ID == s.Host && !errors.Is(err, errKeysLost) && !errors.Is(err, errNotReached)
		switch {
		case err != nil && (makes || want.ID == peer || own):
			return nil, nil, fmt.Errorf("%s: %w", r.displayName(want.ID), err)
		case err != nil:
			continue // the keys of the other hosts are enough to read every Secret
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

// addHost adds a host. The peer goes first.
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

// hostEncryption is the encryption state of a host.
type hostEncryption struct {
	member bool
	config encryption.Config // nil: none
}

var (
	// errKeysLost means that the configuration on a host is missing. It can be restored.
	errKeysLost   = errors.New("its encryption keys for Secrets are missing")
	errNotReached = errors.New("it was not reached, so its encryption keys are unknown")
)

// readEncryption reads the configuration that the API server on the host uses at its next start. A nil host means that
// the host was not reached.
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

// parseEncryption parses the output of readEncryption's script.
func parseEncryption(out []byte) (hostEncryption, error) {
	rest, member := bytes.CutPrefix(out, []byte("member\n"))
	got := hostEncryption{member: member}
	text, hasConfig := bytes.CutPrefix(rest, []byte("config\n"))
	switch {
	case hasConfig:
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

// keysWithin bounds reading the keys of one host.
const keysWithin = time.Minute

// rewriteSecrets stores every Secret again, encrypted with the current key.
func (r *Run) rewriteSecrets(ctx context.Context, client API, s plan.Step) error {
	return client.RewriteSecrets(ctx, func(written int) {
		r.emitEvent(Event{Type: StepOutput, Step: s.ID, Line: fmt.Sprintf("%d Secrets rewritten", written)})
	})
}
