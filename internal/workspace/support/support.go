// Package support collects what is needed to help with a cluster into one archive: the desired and the observed state,
// plans, past runs, and the machines' own reports. Everything passes through package redact, which removes secrets.
// What could not be collected is listed and does not fail the bundle.
package support

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"kubeone/internal/host"
	"kubeone/internal/text/redact"
)

// Host is the part of host.Host that this package needs.
type Host interface {
	Run(ctx context.Context, c host.Cmd) (host.Result, error)
}

// Document is a document that the caller already has.
type Document struct {
	Name string // in the archive; *.json and *.jsonl stay JSON
	Text []byte
}

// Input is the content of a bundle.
type Input struct {
	Cluster   string
	Now       func() time.Time
	Documents []Document
	Hosts     map[string]Host   // those that answer, by the name of their directory, which is not a path
	Silent    map[string]string // why a host is not among them, likewise
	// Kubernetes is the API, nil if it does not answer; then NoAPI says why.
	Kubernetes kubernetes.Interface
	NoAPI      string
	Journals   string   // directory with this machine's journals of runs; "" for none
	Secrets    []string // values that must not be in the bundle

	Timeout  time.Duration // for one host, and for the API; 0 is 45 s
	Parallel int           // hosts asked at a time; 0 is 16
}

// Limits of what is collected, in bytes of text before compression.
const (
	mostOfLog     = 384 << 10 // of each log of a host
	mostOfHost    = 6 << 20
	mostOfJournal = 1 << 20
	journals      = 10 // number of runs
)

// Missing is something that could not be collected.
type Missing struct {
	What string // "hosts/cp-1"
	Why  string
}

// Write collects data and writes the bundle as a gzipped tar. It returns what is missing, sorted. The error is that of
// writing, or of ctx.
func Write(ctx context.Context, w io.Writer, in Input) ([]Missing, error) {
	if in.Timeout == 0 {
		in.Timeout = 45 * time.Second
	}
	if in.Parallel == 0 {
		in.Parallel = 16
	}
	b := newBundle(w, in)
	for _, d := range in.Documents {
		b.addFile(d.Name, d.Text)
	}
	for name, why := range in.Silent {
		b.noteMissing("hosts/"+name, why)
	}
	b.addJournals(in.Journals)
	var work sync.WaitGroup
	work.Go(func() { b.fromAPI(ctx, in) })
	b.fromHosts(ctx, in)
	work.Wait()
	b.listMissing()
	return b.missing, b.close(ctx)
}

// bundle is an archive being written. It is safe for concurrent use.
type bundle struct {
	redactor *redact.Redactor
	top      string // the directory that contains everything
	now      time.Time

	mu      sync.Mutex
	zip     *gzip.Writer
	tar     *tar.Writer
	names   map[string]bool // of its files
	err     error           // the first
	missing []Missing
}

func newBundle(w io.Writer, in Input) *bundle {
	zip := gzip.NewWriter(w)
	return &bundle{
		redactor: redact.New(in.Secrets...), top: in.Cluster + "-support", now: in.Now().UTC(), zip: zip,
		tar: tar.NewWriter(zip), names: map[string]bool{},
	}
}

// addFile adds a file to the bundle; there is no other way in. Empty files are left out. A file is also left out, and
// listed as missing, if its name exists already or leads to another directory.
func (b *bundle) addFile(name string, text []byte) {
	if len(strings.TrimSpace(string(text))) == 0 {
		return
	}
	switch path.Ext(name) {
	case ".json":
		text = b.redactor.JSON(text)
	case ".jsonl":
		text = b.redactor.JSONLines(text)
	default:
		text = []byte(b.redactor.Text(string(text)))
	}
	name = b.redactor.Text(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !fs.ValidPath(name) || b.names[name] {
		b.missing = append(b.missing, Missing{name, "its name is that of another file"})
		return
	}
	b.names[name] = true
	if b.err != nil {
		return
	}
	b.err = b.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path.Join(b.top, name), Mode: 0o600, Size: int64(len(text)), ModTime: b.now,
		Format: tar.FormatPAX,
	})
	if b.err == nil {
		_, b.err = b.tar.Write(text)
	}
}

// noteMissing records what could not be collected.
func (b *bundle) noteMissing(what, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missing = append(b.missing, Missing{what, b.redactor.Text(strings.TrimSpace(why))})
}

func (b *bundle) listMissing() {
	slices.SortFunc(b.missing, func(x, y Missing) int { return strings.Compare(x.What, y.What) })
	var text strings.Builder
	for _, m := range b.missing {
		fmt.Fprintf(&text, "%s: %s\n", m.What, m.Why)
	}
	b.addFile("missing.txt", []byte(text.String()))
}

// close ends the archive. An interrupted archive is an error, whatever it contains.
func (b *bundle) close(ctx context.Context) error {
	for _, end := range []func() error{b.tar.Close, b.zip.Close, ctx.Err} {
		if err := end(); b.err == nil {
			b.err = err
		}
	}
	return b.err
}
