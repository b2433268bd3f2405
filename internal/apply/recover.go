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

// Copy holds the parts of the source of a restore that are on the operator's machine. All of them are secret. Printing
// or marshalling shows no content.
type Copy struct {
	// Snapshot opens the snapshot of etcd and returns its size in bytes; nil if the host's own data is the source. It
	// may be called again after a lost connection.
	Snapshot   func() (io.Reader, int64, error)
	PKI        []byte // a tar for /etc/kubernetes/pki; nil if the copy has none
	Encryption []byte // the API server's configuration of encryption at rest; nil if there is none
}

const redactedCopy = "apply.Copy(redacted)"

// Format hides the content from every verb.
func (Copy) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redactedCopy) }

// MarshalText hides the content from JSON, YAML and structured logs.
func (Copy) MarshalText() ([]byte, error) { return []byte(redactedCopy), nil }

// secretFiles returns the secret files for the restore step, by name.
func (c *Copy) secretFiles() (map[string][]byte, error) {
	if c == nil {
		return nil, errors.New("no source for the restore was given")
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

// memberDir is the directory of the etcd data on a host.
const memberDir = "/var/lib/etcd/member"

// uploadSnapshot uploads the snapshot for the restore, unless it is on the host already or an unfinished restore has
// used it. The snapshot is not uploaded like other secrets, because it may be too large for their memory file system.
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
		Name: "look for the snapshot", Script: check, Timeout: StepTimeout,
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
