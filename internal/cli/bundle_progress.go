package cli

import (
	"fmt"
	"io"
	"time"

	"kubeone/internal/release"
	"kubeone/internal/view"
)

// byteProgress shows how far a bundle has come: one live line on a terminal, elsewhere a line per finished part and a
// heartbeat.
type byteProgress struct {
	out   io.Writer
	live  *view.LiveLine // nil where no terminal is
	shown time.Time
}

// How often the progress is shown while no part is finished.
const (
	liveEvery      = 200 * time.Millisecond
	heartbeatEvery = 10 * time.Second
)

func newByteProgress(out io.Writer) *byteProgress {
	return &byteProgress{out: out, live: view.LiveLineOn(out), shown: time.Now()}
}

// show is called for every change, one call at a time.
func (p *byteProgress) show(now release.Progress) {
	every := heartbeatEvery
	if p.live != nil {
		every = liveEvery
	}
	if time.Since(p.shown) < every && (p.live != nil || now.Done == "") {
		return
	}
	p.shown = time.Now()
	line := fmt.Sprintf("[%d/%d] %s of %s", now.Entries, now.TotalEntries, megabytes(now.Bytes),
		megabytes(now.TotalBytes))
	if now.Done != "" {
		line += "  " + now.Done
	}
	if p.live == nil {
		_, _ = fmt.Fprintln(p.out, line)
		return
	}
	p.live.Show(line)
}

// end clears the live line.
func (p *byteProgress) end() { p.live.Show("") }
