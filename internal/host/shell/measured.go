package shell

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressEvery is the minimum interval between calls of Progress.
const progressEvery = 10 * time.Millisecond

// measured reads exactly size bytes from r. If the content is shorter or longer, or reading fails, the stream ends
// early. The receiver then sees a wrong size and keeps the old file.
type measured struct {
	r        io.Reader
	size     int64
	progress func(int64)

	mu   sync.Mutex
	sent int64
	told time.Time
	err  error
}

func (m *measured) Read(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.r == nil || m.err != nil {
		return 0, io.EOF
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.size-m.sent)])
	m.sent += int64(n)
	if m.sent == m.size && err == nil { // pass on the last bytes only once they are known to be the last
		var one [1]byte
		if more, _ := io.ReadFull(m.r, one[:]); more > 0 {
			m.err = fmt.Errorf("%w: more than %d bytes", errSize, m.size)
			return 0, io.EOF
		}
		err = io.EOF
	}
	switch {
	case err == io.EOF && m.sent < m.size:
		m.err = fmt.Errorf("%w: %d bytes, not %d", errSize, m.sent, m.size)
	case err != nil && err != io.EOF:
		m.err = fmt.Errorf("read the content: %w", err)
		return n, io.EOF
	}
	if now := time.Now(); m.progress != nil && (m.sent == m.size || now.Sub(m.told) > progressEvery) {
		m.told = now
		m.progress(m.sent)
	}
	return n, err
}

// contentError returns the error of reading the content, or nil if all of it was read.
func (m *measured) contentError() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}
