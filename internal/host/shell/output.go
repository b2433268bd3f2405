package shell

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"kubeone/internal/host"
)

// stderrTail is the number of bytes of standard error that an ExitError keeps.
const stderrTail = 8 << 10

// An Output receives one stream of a command. It writes to the writer of the caller or into a buffer, and keeps the end
// of the stream. After Shut it accepts nothing, so that an abandoned command cannot write to it any more.
type Output struct {
	mu   sync.Mutex
	w    io.Writer   // nil: collect
	stop func(error) // ends the command when its output cannot be written
	buf  bytes.Buffer
	tail []byte
	done bool
}

// Write accepts the command's output.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return 0, io.ErrClosedPipe
	}
	o.tail = append(o.tail, p[max(0, len(p)-stderrTail):]...)
	if extra := len(o.tail) - stderrTail; extra > stderrTail { // drop the old half now and then, not byte by byte
		o.tail = append(o.tail[:0], o.tail[extra:]...)
	}
	if o.w == nil && o.buf.Len()+len(p) > host.MaxOutput {
		o.stop(host.ErrOutput)
		return 0, host.ErrOutput
	}
	if o.w == nil {
		return o.buf.Write(p)
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.stop(fmt.Errorf("write the command's output: %w", err))
	}
	return n, err
}

// NewOutput returns an Output to w; nil collects. It calls stop, with the reason, when w fails.
func NewOutput(w io.Writer, stop func(error)) *Output { return &Output{w: w, stop: stop} }

// Shut ends the stream and returns the collected output and the end of the stream.
func (o *Output) Shut() (collected, tail []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = true
	return o.buf.Bytes(), o.tail[max(0, len(o.tail)-stderrTail):]
}
