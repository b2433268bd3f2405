package view

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Binary data passes unchanged, also through a Terminal.
func TestBinaryContentIsNotCleaned(t *testing.T) {
	t.Parallel()
	const content = "\x00\x1b[2J\xff\r\n"
	var b bytes.Buffer
	terminal := NewTerminal(&b)
	out, err := Binary(terminal)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte(content)); err != nil || b.String() != content {
		t.Errorf("%q, %v", b.String(), err)
	}
	if _, err := terminal.Write([]byte(content)); err != nil || strings.Count(b.String(), "\x1b") != 1 {
		t.Errorf("%q, %v", b.String(), err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if out, err := Binary(NewTerminal(file)); err != nil || out != file {
		t.Errorf("a file: %v, %v", out, err)
	}
}
