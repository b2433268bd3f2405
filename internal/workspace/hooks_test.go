package workspace

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubeone/internal/apply"
)

func TestHooksRunInTheManifestsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$1 of $KUBEONE_NODE in $(pwd)\"\necho told >&2\n"
	if err := os.WriteFile(filepath.Join(dir, "tell.sh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	h := apply.Hook{
		Command: []string{"./tell.sh", "it's a  word"}, Env: []string{"KUBEONE_NODE=cp-1"}, Timeout: time.Minute,
	}
	if err := runHook(dir)(t.Context(), h, &out); err != nil {
		t.Fatal(err)
	}
	if want := "it's a  word of cp-1 in " + dir + "\ntold\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestHooksThatFailSayHow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command []string
		timeout time.Duration
		says    string
	}{
		{[]string{"sh", "-c", "exit 3"}, time.Minute, "failed: sh ended with status 3"},
		{[]string{"sh", "-c", "trap '' TERM; sleep 600 & wait; sleep 600"}, time.Second,
			"was killed: it has not ended within 1s"},
		{[]string{"./no-such-program"}, time.Minute, "cannot be run: "},
		{[]string{"sh", "-c", "kill -9 $$"}, time.Minute, "failed: sh ended by signal: killed"},
	} {
		began := time.Now()
		err := runHook(t.TempDir())(t.Context(), apply.Hook{Command: c.command, Timeout: c.timeout}, &bytes.Buffer{})
		if err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.command, err, c.says)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%q took %s", c.command, took)
		}
	}
}

func TestAHookEndsWithItsRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() {
		<-started
		cancel()
	}()
	h := apply.Hook{Command: []string{"sh", "-c", "echo begun; exec sleep 600"}, Timeout: time.Minute}
	err := runHook(t.TempDir())(ctx, h, writerFunc(func(p []byte) (int, error) {
		close(started)
		return len(p), nil
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
