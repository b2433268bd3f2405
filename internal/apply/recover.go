package apply

import (
	"context"
	"errors"
	"fmt"
	"io"

	"kubeone/internal/host"
	"kubeone/internal/plan"
	"kubeone/internal/plan/step"
	"kubeone/internal/script"
)

// Copy is what a cluster is restored from, as far as the operator's machine has it. All of it is secret; it
// shows nothing of itself when it is printed or marshalled.
type Copy struct {
	// Snapshot opens the snapshot of etcd and says how many bytes it has; nil when the host's own data is the
	// source. It may be called again after a lost connection.
	Snapshot   func() (io.Reader, int64, error)
	PKI        []byte // a tar for /etc/kubernetes/pki; nil where the copy has none
	Encryption []byte // the API server's configuration of encryption at rest; nil where there is none
}

const redactedCopy = "apply.Copy(redacted)"

// Format hides the content from every verb.
func (Copy) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redactedCopy) }

// MarshalText hides the content from JSON, YAML and structured logs.
func (Copy) MarshalText() ([]byte, error) { return []byte(redactedCopy), nil }

// secretFiles are the files that a restore may read.
func (c *Copy) secretFiles() (map[string][]byte, error) {
	if c == nil {
		return nil, errors.New("nothing to restore from was given")
	}
	out := map[string][]byte{}
	if c.PKI != nil {
		out[script.PKIFile] = c.PKI
	}
	if c.Encryption != nil {
		out[script.EncryptionFile] = c.Encryption
	}
	return out, nil
}

// memberDir is where etcd's data is on a host.
const memberDir = "/var/lib/etcd/member"

// uploadSnapshot puts the snapshot where the restore looks for it, unless it is there, or a restore that has
// not ended yet has used it already. It may be too large for the memory file system that other secrets are in.
func (r *Run) uploadSnapshot(ctx context.Context, h host.Host, s plan.Step) error {
	from, restores := s.Intent.Params.(step.RestoreParams)
	if !restores || r.Copy == nil || r.Copy.Snapshot == nil {
		return nil
	}
	const check = `dir=$1 snapshot=$2 sum=$3 copied=$4 marker=$5 member=$6
umask 077
mkdir -p "$dir"
if { grep -qs '^restoring=yes$' "$marker" && [ -d "$member" ] && [ "$(cat "$dir/done" 2>/dev/null)" = "$copied" ]; } ||
	{ [ -f "$snapshot" ] && printf '%s  %s\n' "$sum" "$snapshot" | sha256sum -c --status -; }
then printf there; fi`
	res, err := h.Run(ctx, host.Cmd{
		Name: "check for the snapshot", Script: check, Timeout: StepTimeout,
		Args: []string{script.RecoveryDir, script.RecoverySnapshot, from.Snapshot,
			string(from.From) + " " + from.Snapshot, script.MarkerFile, memberDir},
	})
	if err != nil || string(res.Stdout) == "there" {
		return err
	}
	content, size, err := r.Copy.Snapshot()
	if err != nil {
		return err
	}
	return h.Upload(ctx, host.File{Path: script.RecoverySnapshot, Mode: 0o600, Size: size, Content: content})
}
