package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"kubeone/internal/release"
)

// byteProgress shows how far a bundle has come: one live line on a terminal, elsewhere a line per finished part and a
// heartbeat.
type byteProgress struct {
	out   io.Writer
	live  bool
	shown time.Time
	dirty bool // the live line has text
}

// How often the progress is shown while no part is finished.
const (
	liveEvery      = 200 * time.Millisecond
	heartbeatEvery = 10 * time.Second
)

func newByteProgress(out io.Writer) *byteProgress {
	file, ok := out.(*os.File)
	return &byteProgress{out: out, live: ok && term.IsTerminal(int(file.Fd())), shown: time.Now()}
}

// show is called for every change, one call at a time.
func (p *byteProgress) show(now release.Progress) {
	every := heartbeatEvery
	if p.live {
		every = liveEvery
	}
	if time.Since(p.shown) < every && (p.live || now.Done == "") {
		return
	}
	p.shown = time.Now()
	line := fmt.Sprintf("[%d/%d] %s of %s", now.Entries, now.TotalEntries, megabytes(now.Bytes),
		megabytes(now.TotalBytes))
	if now.Done != "" {
		line += "  " + now.Done
	}
	if !p.live {
		_, _ = fmt.Fprintln(p.out, line)
		return
	}
	_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	p.dirty = true
}

// end clears the live line.
func (p *byteProgress) end() {
	if p.dirty {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
