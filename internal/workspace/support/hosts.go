package support

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"kubeone/internal/host"
	"kubeone/internal/text/pattern"
)

//go:embed collect.sh
var collect string

// sectionMark begins a section in the output of collect.sh.
const sectionMark = "\n::kubeone-section:: "

// sectionName matches valid section names. A name becomes a file in the directory of the host. A host cannot write to
// the directory of another host.
var sectionName = pattern.Lazy(`^[a-z][a-z-]{0,40}\.(txt|log)$`)

const maxSections = 64

// addHosts collects data from all hosts in parallel.
func (b *bundle) addHosts(ctx context.Context, in Input) {
	var group errgroup.Group
	group.SetLimit(in.Parallel)
	for name, h := range in.Hosts {
		group.Go(func() error {
			b.addHost(ctx, in, name, h)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
}

func (b *bundle) addHost(ctx context.Context, in Input, name string, h Host) {
	out := &limitedBuffer{max: maxHostBytes}
	cmd := host.Cmd{
		Name: "collect logs", Script: collect, Args: []string{strconv.Itoa(maxLogBytes)}, Stdout: out,
		Timeout: in.Timeout,
	}
	ctx, cancel := context.WithTimeout(ctx, in.Timeout)
	defer cancel()
	result, err := h.Run(ctx, cmd)
	if err != nil {
		b.noteMissing("hosts/"+name, err.Error())
	}
	b.addFile("hosts/"+name+"/stderr.txt", result.Stderr)
	// Output before a failure is useful too.
	unexpected, printed := false, map[string]bool{"stderr.txt": true}
	for i, section := range strings.Split("\n"+string(out.keptBytes()), sectionMark) {
		file, text, _ := strings.Cut(section, "\n")
		if i == 0 {
			file, text = "before.txt", section // output of the login
		}
		if i > maxSections || !sectionName().MatchString(file) || printed[file] {
			unexpected = true
			continue
		}
		printed[file] = true
		b.addFile("hosts/"+name+"/"+file, dropPartialLine([]byte(text), maxLogBytes))
	}
	if unexpected {
		b.noteMissing("hosts/"+name, "unexpected and duplicate sections were left out")
	}
}

// dropPartialLine removes the first line of a text that was truncated to limit bytes, because the line may be
// incomplete.
func dropPartialLine(text []byte, limit int) []byte {
	if len(text) >= limit {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// limitedBuffer holds the output of a host. A write beyond max bytes is an error, so that endless output does no harm.
type limitedBuffer struct {
	max int
	buf bytes.Buffer
}

// errTooMuch stops a command that prints too much.
var errTooMuch = errors.New("the host printed too much")

// Write implements io.Writer.
func (t *limitedBuffer) Write(p []byte) (int, error) {
	if t.buf.Len()+len(p) > t.max {
		return 0, fmt.Errorf("%w: more than %d bytes", errTooMuch, t.max)
	}
	return t.buf.Write(p)
}

func (t *limitedBuffer) keptBytes() []byte { return t.buf.Bytes() }
