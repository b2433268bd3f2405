package components

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

// Mirror serves the components of sets under the projects' download paths, with the host name as the first element, and
// the images as a registry under /v2/. Other paths return 404.
type Mirror struct {
	files    map[string]string
	registry http.Handler

	mu   sync.Mutex
	sums map[string]string
}

// NewMirror returns a mirror of the sets.
func NewMirror(sets ...*Set) (*Mirror, error) {
	mirror := &Mirror{files: map[string]string{}, sums: map[string]string{}}
	var images []Image
	for _, set := range sets {
		for _, file := range set.Files {
			mirror.files["/"+file.URL] = file.Local
		}
		images = append(images, set.Images...)
	}
	var err error
	mirror.registry, err = newRegistry(images)
	return mirror, err
}

// ServeHTTP answers GET and HEAD.
func (m *Mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "a mirror is read only", http.StatusMethodNotAllowed)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/v2/") || r.URL.Path == "/v2" {
		m.registry.ServeHTTP(w, r)
		return
	}
	if local, ok := m.files[r.URL.Path]; ok {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFile(w, r, local)
		return
	}
	text, err := m.checksumFile(r.URL.Path)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case text == "":
		http.NotFound(w, r)
	default:
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(text)))
	}
}

// checksumFile returns a checksum file, or "" if there is none at this path. The formats are those of the projects:
// Kubernetes has the digest alone, runc and etcd one file for a release, the others "DIGEST  NAME".
func (m *Mirror) checksumFile(url string) (string, error) {
	if file := path.Base(url); file == "runc.sha256sum" || file == "SHA256SUMS" {
		for name, local := range m.files {
			if path.Dir(name) == path.Dir(url) {
				sum, err := m.sumOf(local)
				return sum + " *" + path.Base(name) + "\n", err
			}
		}
		return "", nil
	}
	for _, suffix := range []string{".sha256sum", ".sha256"} {
		of, ok := strings.CutSuffix(url, suffix)
		local, known := m.files[of]
		if !ok || !known {
			continue
		}
		sum, err := m.sumOf(local)
		if strings.HasPrefix(of, "/dl.k8s.io/") {
			return sum, err
		}
		return sum + "  " + path.Base(of) + "\n", err
	}
	return "", nil
}

// sumOf returns the SHA-256 of a local file, and computes it once.
func (m *Mirror) sumOf(local string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sum, ok := m.sums[local]; ok {
		return sum, nil
	}
	file, err := os.Open(local)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	m.sums[local] = hex.EncodeToString(hash.Sum(nil))
	return m.sums[local], nil
}

// Listen serves on an address like "127.0.0.1:0". It returns the actual address and a function that stops the server
// and closes its connections. The server also stops when ctx ends.
func (m *Mirror) Listen(ctx context.Context, address string) (string, func() error, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("mirror: %w", err)
	}
	server := &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	unhook := context.AfterFunc(ctx, func() { server.Close() })
	stop := func() error {
		unhook()
		if err := server.Close(); err != nil {
			return err
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
	return listener.Addr().String(), stop, nil
}
