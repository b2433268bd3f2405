package apply

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/script"
	"maps"
	"path"
	"slices"
)

// credentialFiles returns the host credentials for registries and proxies as one file, or no file if there are none.
func (r *Run) credentialFiles() (map[string][]byte, error) {
	out := map[string][]byte{}
	if r.Credentials == nil {
		return out, nil
	}
	files, err := credentialsTar(*r.Credentials)
	if files != nil {
		out[script.CredentialsFile] = files
	}
	return out, err
}

// credentialsTar returns the content of script.CredentialsFile, or nil if there are no credentials to send to hosts.
func credentialsTar(c desired.Credentials) ([]byte, error) {
	files := componentconfig.CredentialFiles(c)
	if len(files) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, at := range slices.Sorted(maps.Keys(files)) {
		content := files[at]
		header := &tar.Header{Name: path.Base(at), Mode: 0o600, Size: int64(len(content))}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(content)); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Files are secret files for control-plane components, by name. Printing or marshalling them shows no content.
type Files map[string][]byte

const redactedFiles = "apply.Files(redacted)"

// Format hides the content from every verb.
func (Files) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redactedFiles) }

// MarshalText hides the content from JSON, YAML and structured logs.
func (Files) MarshalText() ([]byte, error) { return []byte(redactedFiles), nil }
