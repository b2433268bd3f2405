package view

import (
	"fmt"
	"io"
	"time"

	"kubeone/internal/release"
)

// ByteProgress shows how far a bundle has come: one live line on a terminal, elsewhere a line per finished part and a
// heartbeat.
type ByteProgress struct {
	out   io.Writer
	live  *LiveLine // nil where no terminal is
	shown time.Time
}

// How often the progress is shown while no part is finished.
const (
	liveEvery      = 200 * time.Millisecond
	heartbeatEvery = 10 * time.Second
)

// NewByteProgress returns the progress that is shown on a writer.
func NewByteProgress(out io.Writer) *ByteProgress {
	return &ByteProgress{out: out, live: LiveLineOn(out), shown: time.Now()}
}

// Show is called for every change, one call at a time.
func (p *ByteProgress) Show(now release.Progress) {
	every := heartbeatEvery
	if p.live != nil {
		every = liveEvery
	}
	if time.Since(p.shown) < every && (p.live != nil || now.Done == "") {
		return
	}
	p.shown = time.Now()
	line := fmt.Sprintf("[%d/%d] %s of %s", now.Entries, now.TotalEntries, Megabytes(now.Bytes),
		Megabytes(now.TotalBytes))
	if now.Done != "" {
		line += "  " + now.Done
	}
	if p.live == nil {
		_, _ = fmt.Fprintln(p.out, line)
		return
	}
	p.live.Show(line)
}

// End clears the live line.
func (p *ByteProgress) End() { p.live.Show("") }

// Bundle writes what is in a bundle.
func Bundle(w io.Writer, i release.Index, verified bool) {
	out := &page{}
	out.para("", BundleSummary(i), plain)
	out.para("", "created by "+i.CreatedBy, plain)
	out.space()
	binaries := &table{head: []string{"BINARY", "VERSION", "SIZE", "SHA256"}}
	for _, b := range i.Artifacts.Binaries {
		binaries.addTexts(b.Name, b.Version, Megabytes(b.Size), b.SHA256)
	}
	out.table(binaries)
	out.space()
	images := &table{head: []string{"IMAGE", "NEEDED BY", "SIZE", "DIGEST"}}
	for _, image := range i.Artifacts.Images {
		roles := "every host"
		if len(image.Roles) > 0 {
			roles = string(image.Roles[0])
		}
		images.addTexts(image.Name, roles, Megabytes(image.Size), image.Digest)
	}
	out.table(images)
	if verified {
		out.space()
		out.line(fmt.Sprintf("all %d parts match their digests", len(i.Entries)))
	}
	out.flush(w)
}

// BundleSummary describes a bundle in one line.
func BundleSummary(i release.Index) string {
	return fmt.Sprintf("Kubernetes %s for linux/%s, CNI %s: %d binaries, %d images, %s in %d parts",
		i.KubernetesVersion, i.Arch, i.CNI, len(i.Artifacts.Binaries), len(i.Artifacts.Images), Megabytes(i.Size()),
		len(i.Entries))
}

// Megabytes writes a size for a person.
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
