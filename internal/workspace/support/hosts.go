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

// mark begins a section in the output of collect.sh.
const mark = "\n::kubeone-section:: "

// sectionName matches names of sections. A name becomes a file in the host's own directory; no host can write to
// another's.
var sectionName = pattern.Lazy(`^[a-z][a-z-]{0,40}\.(txt|log)$`)

const mostSections = 64

// fromHosts runs one command on each host.
func (b *bundle) fromHosts(ctx context.Context, in Input) {
	var group errgroup.Group
	group.SetLimit(in.Parallel)
	for name, h := range in.Hosts {
		group.Go(func() error {
			b.fromHost(ctx, in, name, h)
			return nil
		})
	}
	_ = group.Wait() // nothing fails
}

func (b *bundle) fromHost(ctx context.Context, in Input, name string, h Host) {
	out := &bounded{most: mostOfHost}
	cmd := host.Cmd{
		Name: "collect logs", Script: collect, Args: []string{strconv.Itoa(mostOfLog)}, Stdout: out,
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
	strange, printed := false, map[string]bool{"stderr.txt": true}
	for i, section := range strings.Split("\n"+string(out.bytes()), mark) {
		file, text, _ := strings.Cut(section, "\n")
		if i == 0 {
			file, text = "before.txt", section // output of the login
		}
		if i > mostSections || !sectionName().MatchString(file) || printed[file] {
			strange = true
			continue
		}
		printed[file] = true
		b.addFile("hosts/"+name+"/"+file, fullLines([]byte(text), mostOfLog))
	}
	if strange {
		b.noteMissing("hosts/"+name, "sections that are not expected, or are there twice, were left out")
	}
}

// fullLines drops the first line of a text that was cut to most bytes, because half a line may mislead.
func fullLines(text []byte, most int) []byte {
	if len(text) >= most {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text
}

// bounded keeps the beginning of a stream, so that endless output of a host does no harm.
type bounded struct {
	most int
	buf  bytes.Buffer
}

// errTooMuch ends a command with too much output.
var errTooMuch = errors.New("the host printed too much")

// Write keeps what fits.
func (t *bounded) Write(p []byte) (int, error) {
	if t.buf.Len()+len(p) > t.most {
		return 0, fmt.Errorf("%w: more than %d bytes", errTooMuch, t.most)
	}
	return t.buf.Write(p)
}

func (t *bounded) bytes() []byte { return t.buf.Bytes() }
