// Package support collects the information needed to troubleshoot a cluster in one archive: the desired and the
// observed state, plans, past runs, and logs from the hosts. Package redact removes secrets from all of it. What cannot
// be collected is listed in the archive and is not an error.
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
	Cluster     string
	Now         func() time.Time
	Documents   []Document
	Hosts       map[string]Host   // the hosts that respond, by the name of their directory in the bundle
	Unreachable map[string]string // the reasons why other hosts do not respond, by the same names
	// Kubernetes is a client for the API, or nil if the API does not respond. NoAPI then gives the reason.
	Kubernetes kubernetes.Interface
	NoAPI      string
	Journals   string   // directory with journals of runs; "" means none
	Secrets    []string // values that must not be in the bundle

	Timeout  time.Duration // for each host, and for the API; 0 means 45 s
	Parallel int           // maximum number of hosts at a time; 0 means 16
}

// The limits for collected data, in bytes of text before compression.
const (
	maxLogBytes     = 384 << 10 // for each log on a host
	maxHostBytes    = 6 << 20
	maxJournalBytes = 1 << 20
	maxJournals     = 10 // number of journals
)

// Missing is something that could not be collected.
type Missing struct {
	What string // "hosts/cp-1"
	Why  string
}

// Write collects data and writes the bundle as a gzipped tar. It returns what is missing, sorted. The error is one from
// w, or ctx's if it ended.
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
	for name, why := range in.Unreachable {
		b.noteMissing("hosts/"+name, why)
	}
	b.addJournals(in.Journals)
	var work sync.WaitGroup
	work.Go(func() { b.addAPI(ctx, in) })
	b.addHosts(ctx, in)
	work.Wait()
	b.listMissing()
	return b.missing, b.close(ctx)
}

// bundle is an archive being written. It is safe for concurrent use.
type bundle struct {
	redactor *redact.Redactor
	root     string // the directory that contains all files
	now      time.Time

	mu      sync.Mutex
	zip     *gzip.Writer
	tar     *tar.Writer
	names   map[string]bool // of files in the archive
	err     error           // the first error
	missing []Missing
}

func newBundle(w io.Writer, in Input) *bundle {
	zip := gzip.NewWriter(w)
	return &bundle{
		redactor: redact.New(in.Secrets...), root: in.Cluster + "-support", now: in.Now().UTC(), zip: zip,
		tar: tar.NewWriter(zip), names: map[string]bool{},
	}
}

// addFile redacts a file and adds it to the bundle. All files are added by this method. Empty files are left out. A
// file is also left out, and listed as missing, if its name exists already or is not a valid path in the archive.
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
		b.missing = append(b.missing, Missing{name, "another file has the same name, or the name is not a valid path"})
		return
	}
	b.names[name] = true
	if b.err != nil {
		return
	}
	b.err = b.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path.Join(b.root, name), Mode: 0o600, Size: int64(len(text)), ModTime: b.now,
		Format: tar.FormatPAX,
	})
	if b.err == nil {
		_, b.err = b.tar.Write(text)
	}
}

// noteMissing records something that could not be collected.
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

// close completes the archive. If ctx has ended, it returns an error, even if the archive is complete.
func (b *bundle) close(ctx context.Context) error {
	for _, end := range []func() error{b.tar.Close, b.zip.Close, ctx.Err} {
		if err := end(); b.err == nil {
			b.err = err
		}
	}
	return b.err
}
