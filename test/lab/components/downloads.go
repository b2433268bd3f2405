package components

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	// downloadsVariable is the environment variable for Builder.Downloads.
	downloadsVariable = "KUBEONE_LAB_DOWNLOADS"
	// noDownloads is the value that builds everything from source.
	noDownloads = "none"
	// maxDownload limits the size of a file, in bytes.
	maxDownload = 512 << 20
	// answerDeadline limits the time until the answer begins, downloadDeadline the whole download.
	answerDeadline   = 10 * time.Second
	downloadDeadline = 15 * time.Minute
)

// Download is a published file of a release: a program, or an archive (.tar.gz, .tgz) of several.
type Download struct {
	// URL is the location without the scheme.
	URL string
	// Checksum is the URL of the SHA-256, alone or in a line with the file's name. It is empty if the project publishes
	// none.
	Checksum string
	// Members maps the names of programs to their paths in the archive. A file that is not an archive has one program
	// with an empty path.
	Members map[string]string
}

// downloadsFromEnvironment returns the prefix of a Download's URL: $KUBEONE_LAB_DOWNLOADS, by default https://.
func downloadsFromEnvironment() string {
	if base := os.Getenv(downloadsVariable); base != "" {
		return base
	}
	return "https://"
}

// downloadedDir returns the directory of a recipe's programs. It downloads the published ones, builds the others, and
// fails when a download fails.
func (b *Builder) downloadedDir(ctx context.Context, r Recipe) (string, error) {
	key := r.Name + "-" + r.Version + "-downloaded-" + runtime.GOARCH
	return b.Cache.Entry(ctx, "bin", key, func(dir string) error {
		rest := r
		rest.Packages = maps.Clone(r.Packages)
		for _, file := range r.Downloads {
			if err := b.downloadFile(ctx, file, dir); err != nil {
				return fmt.Errorf("download %s: %w", file.URL, err)
			}
			for program := range file.Members {
				delete(rest.Packages, program)
			}
		}
		if len(rest.Packages) == 0 {
			return nil
		}
		return b.goBuild(ctx, rest, dir)
	})
}

// downloadFile writes the programs of a published file into dir. It verifies the file before it extracts anything.
func (b *Builder) downloadFile(ctx context.Context, file Download, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, downloadDeadline)
	defer cancel()
	temp, err := os.CreateTemp(dir, ".download-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	body, err := b.getLocation(ctx, file.URL)
	if err != nil {
		return err
	}
	defer body.Close()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(temp, hash), io.LimitReader(body, maxDownload+1))
	if err != nil {
		return err
	}
	if size > maxDownload {
		return fmt.Errorf("it has more than %d MiB", maxDownload>>20)
	}
	if file.Checksum != "" {
		if err := b.verifyChecksum(ctx, file, hex.EncodeToString(hash.Sum(nil))); err != nil {
			return err
		}
	}
	if _, err := temp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if strings.HasSuffix(file.URL, ".tar.gz") || strings.HasSuffix(file.URL, ".tgz") {
		return extractMembers(temp, file.Members, dir)
	}
	for program := range file.Members {
		if err := writeProgram(filepath.Join(dir, program), temp); err != nil {
			return err
		}
	}
	return nil
}

// verifyChecksum compares a file's SHA-256 with the published one.
func (b *Builder) verifyChecksum(ctx context.Context, file Download, sum string) error {
	body, err := b.getLocation(ctx, file.Checksum)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(io.LimitReader(body, 1<<20))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 1 || len(words) == 2 && strings.TrimPrefix(words[1], "*") == path.Base(file.URL) {
			if words[0] != sum {
				return fmt.Errorf("its SHA-256 is %s, want %s of %s", sum, words[0], file.Checksum)
			}
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%s has no SHA-256 of it", file.Checksum), lines.Err())
}

// getLocation requests a location. This builder does not retry a host that it could not reach.
func (b *Builder) getLocation(ctx context.Context, location string) (io.ReadCloser, error) {
	host, _, _ := strings.Cut(location, "/")
	b.mu.Lock()
	err := b.unreachable[host]
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.Downloads+location, nil)
	if err != nil {
		return nil, err
	}
	answer, err := downloadClient.Do(request)
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.unreachable == nil {
			b.unreachable = map[string]error{}
		}
		b.unreachable[host] = err
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("%s: %s", location, answer.Status)
	}
	return answer.Body, nil
}

var downloadClient = &http.Client{Transport: &http.Transport{
	Proxy:                 http.ProxyFromEnvironment,
	DialContext:           (&net.Dialer{Timeout: answerDeadline}).DialContext,
	TLSHandshakeTimeout:   answerDeadline,
	ResponseHeaderTimeout: answerDeadline,
	ForceAttemptHTTP2:     true,
}}

// extractMembers writes only the members (program to path) of a compressed archive into dir.
func extractMembers(compressed io.Reader, members map[string]string, dir string) error {
	stream, err := gzip.NewReader(compressed)
	if err != nil {
		return err
	}
	programs := map[string]string{}
	for program, member := range members {
		programs[member] = program
	}
	archive := tar.NewReader(stream)
	for len(programs) > 0 {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the archive lacks %s", strings.Join(sortWords(keysOf(programs)), ", "))
		}
		if err != nil {
			return err
		}
		name := path.Clean(header.Name)
		program, wanted := programs[name]
		if !wanted || header.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeProgram(filepath.Join(dir, program), archive); err != nil {
			return err
		}
		delete(programs, name)
	}
	return nil
}

func keysOf(programs map[string]string) []string {
	var keys []string
	for key := range programs {
		keys = append(keys, key)
	}
	return keys
}

func writeProgram(name string, content io.Reader) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := io.Copy(file, io.LimitReader(content, maxDownload+1))
	if err == nil && size > maxDownload {
		err = fmt.Errorf("%s has more than %d MiB", filepath.Base(name), maxDownload>>20)
	}
	return errors.Join(err, file.Close())
}
