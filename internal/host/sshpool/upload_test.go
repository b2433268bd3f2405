package sshpool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

// onlyFile checks that a directory holds one file, with this content and mode.
func onlyFile(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if string(got) != content || info.Mode() != mode {
		t.Errorf("%d bytes, mode %v; want %d bytes, mode %v", len(got), info.Mode(), len(content), mode)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	for name, c := range map[string]struct {
		content string
		mode    fs.FileMode
	}{
		"private": {"secret\n", 0o600}, "default": {"x", 0}, "public": {"no newline", 0o644},
		"program": {"#!/bin/sh\n", 0o755},
		"empty":   {"", 0o640}, "binary": {strings.Repeat("\x00\xff'\"$\n", 300_000), 0o700},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "new dir", "it's $HOME")
			f := host.File{Path: path, Mode: c.mode, Size: int64(len(c.content)), Content: strings.NewReader(c.content)}
			must(t, h.Upload(testContext(t), f))
			if c.mode == 0 {
				c.mode = 0o600
			}
			onlyFile(t, path, c.content, c.mode)
		})
	}
}

func TestUploadReplacesAsAWhole(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	path := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(path, []byte("old content"), 0o644))
	must(t, h.Upload(testContext(t), host.File{Path: path, Mode: 0o600, Size: 3, Content: strings.NewReader("new")}))
	onlyFile(t, path, "new", 0o600)
}

func TestUploadSetsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("only root gives files away, and CI must test it: run it as root")
		}
		t.Skip("only root gives files away")
	}
	path := filepath.Join(t.TempDir(), "f")
	must(t, shellHost(t).Upload(testContext(t),
		host.File{Path: path, Owner: "12:34", Size: 1, Content: strings.NewReader("x")}))
	info, err := os.Stat(path)
	must(t, err)
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 12 || st.Gid != 34 {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}

func TestContentOfAnotherSizeChangesNothing(t *testing.T) {
	t.Parallel()
	broken := io.MultiReader(strings.NewReader("12"),
		readerFunc(func([]byte) (int, error) { return 0, errors.New("disk error") }))
	for name, c := range map[string]struct {
		content io.Reader
		words   string
	}{
		"short": {strings.NewReader("12"), "2 bytes, not 5"},
		"long":  {strings.NewReader("1234567"), "more than 5 bytes"}, "broken": {broken, "disk error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "f")
			must(t, os.WriteFile(path, []byte("old"), 0o644))
			err := shellHost(t).Upload(testContext(t), host.File{Path: path, Size: 5, Content: c.content})
			wantClass(t, err, host.Config)
			if !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v", err)
			}
			onlyFile(t, path, "old", 0o644)
		})
	}
}

func TestUploadCutShortChangesNothing(t *testing.T) {
	t.Parallel()
	ended := make(chan int, 1)
	s := sshtest.Start(t, sshtest.Options{Handler: func(s *sshtest.Session) int {
		cut := *s
		cut.Stdin = &dropAfter{r: s.Stdin, left: 1 << 20, drop: s.Drop}
		code := sshtest.Shell()(&cut)
		ended <- code
		return code
	}})
	path := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	content := bytes.Repeat([]byte("x"), 8<<20)
	err := newPool(t, sshpool.Options{}).Host(targetOf(t, s)).Upload(testContext(t),
		host.File{Path: path, Size: int64(len(content)), Content: bytes.NewReader(content)})
	wantClass(t, err, host.Lost)
	if code := <-ended; code == 0 {
		t.Error("the remote side took it for complete")
	}
	onlyFile(t, path, "old", 0o644)
}

func TestUploadThatIsCancelledChangesNothing(t *testing.T) {
	t.Parallel()
	ended := make(chan int, 1)
	s := sshtest.Start(t, sshtest.Options{Handler: func(s *sshtest.Session) int {
		code := sshtest.Shell()(s)
		ended <- code
		return code
	}})
	path := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(path, []byte("old"), 0o644))
	ctx, cancel := context.WithCancel(testContext(t))
	content := bytes.NewReader(make([]byte, 64<<20))
	err := newPool(t, sshpool.Options{}).Host(targetOf(t, s)).Upload(ctx,
		host.File{Path: path, Size: content.Size(), Content: content,
			Progress: func(sent int64) {
				if sent > 1<<20 {
					cancel()
				}
			}})
	wantClass(t, err, host.Canceled)
	if code := <-ended; code == 0 {
		t.Error("the remote side took it for complete")
	}
	onlyFile(t, path, "old", 0o644)
}

func TestUploadRefusesStrangeFiles(t *testing.T) {
	t.Parallel()
	h := shellHost(t)
	for _, f := range []host.File{{Path: "relative"}, {Path: "/"}, {Path: "/a/../b"}, {Path: "/a\nb"}, {Path: "/a/"},
		{Path: "/a", Size: 1},
		{Path: "/a", Mode: fs.ModeSetuid | 0o755}, {Path: "/a", Owner: "--reference=x"}} {
		wantClass(t, h.Upload(testContext(t), f), host.Config)
	}
	dir := t.TempDir()
	err := h.Upload(testContext(t), host.File{Path: dir, Size: 0})
	wantClass(t, err, host.Exit)
}

func TestUploadTellsItsProgress(t *testing.T) {
	t.Parallel()
	var last int64
	content := bytes.NewReader(make([]byte, 4<<20))
	must(t, shellHost(t).Upload(testContext(t),
		host.File{Path: filepath.Join(t.TempDir(), "f"), Size: content.Size(), Content: content,
			Progress: func(sent int64) {
				if sent <= last {
					t.Errorf("%d after %d", sent, last)
				}
				last = sent
			}}))
	if last != content.Size() {
		t.Errorf("ended at %d", last)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// dropAfter cuts the connection after a number of bytes.
type dropAfter struct {
	r    io.Reader
	left int
	drop func()
}

func (d *dropAfter) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if d.left -= n; d.left < 0 {
		d.drop()
	}
	return n, err
}

// BenchmarkUpload measures the speed of one connection on this machine, with both ends in one process.
func BenchmarkUpload(b *testing.B) {
	for _, rtt := range []time.Duration{0, 20 * time.Millisecond} {
		b.Run(fmt.Sprint("rtt=", rtt), func(b *testing.B) {
			s := sshtest.Start(b, sshtest.Options{
				Handler: func(s *sshtest.Session) int { _, _ = io.Copy(io.Discard, s.Stdin); return 0 },
			})
			options := sshpool.Options{KnownHosts: host.PolicyAcceptNew, IgnoreSSHConfig: true, HomeDir: b.TempDir()}
			if rtt > 0 {
				options.NetDial = sshtest.Latency(rtt, nil)
			}
			p := sshpool.New(options)
			defer p.Close()
			h := p.Host(host.Target{Address: "127.0.0.1", Port: s.Port(), KeyFile: sshtest.WriteKey(b, "").Path})
			const size = 256 << 20
			b.SetBytes(size)
			for b.Loop() {
				f := host.File{Path: "/f", Size: size, Content: io.LimitReader(zeros{}, size)}
				if err := h.Upload(b.Context(), f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
