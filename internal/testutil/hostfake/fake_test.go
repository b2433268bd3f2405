package hostfake_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/host"
	"kubeone/internal/testutil/hostfake"
)

// recorder is a testing.TB that records failures instead of failing.
type recorder struct {
	testing.TB
	failures []string
	cleanup  func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(f func())          { r.cleanup = f }
func (r *recorder) Errorf(f string, a ...any) { r.failures = append(r.failures, fmt.Sprintf(f, a...)) }

func TestAnswersWhatIsExpected(t *testing.T) {
	t.Parallel()
	h := hostfake.New(t, "node-1",
		hostfake.Expect{Name: "probe", Stdout: "{}"},
		hostfake.Expect{Script: "kubeadm join", Args: []string{"a"}, Stderr: "no route", ExitCode: 1},
		hostfake.Expect{
			Name: "reach",
			Err:  &host.Error{Class: host.Unreachable, Host: "node-1", Err: errors.New("off")},
		},
		hostfake.Expect{Name: "never", Times: -1})
	res, err := h.Run(t.Context(), host.Cmd{Name: "probe"})
	if err != nil || string(res.Stdout) != "{}" {
		t.Errorf("got %+v, %v", res, err)
	}
	_, err = h.Run(t.Context(), host.Cmd{
		Script: "set -eu\nkubeadm join",
		Args:   []string{"a"},
		Stdin:  strings.NewReader("x"),
	})
	if host.ClassOf(err) != host.Exit || !strings.Contains(err.Error(), "no route") {
		t.Errorf("got %v", err)
	}
	if _, err = h.Run(t.Context(), host.Cmd{Name: "reach"}); host.ClassOf(err) != host.Unreachable {
		t.Errorf("got %v", err)
	}
	if n := len(h.Commands()); n != 3 {
		t.Errorf("%d commands", n)
	}
}

func TestUnexpectedAndMissingCommandsFailTheTest(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	h := hostfake.New(r, "node-1", hostfake.Expect{Name: "wanted"})
	if _, err := h.Run(t.Context(), host.Cmd{Name: "surprise"}); err == nil {
		t.Error("no error")
	}
	if _, err := h.Dial(t.Context(), "tcp", "x:1"); err == nil {
		t.Error("no error")
	}
	r.cleanup()
	if len(r.failures) != 3 {
		t.Errorf("failures: %q", r.failures)
	}
}

func TestKeepsFiles(t *testing.T) {
	t.Parallel()
	h := hostfake.New(t, "node-1")
	if err := h.Upload(t.Context(), host.File{Path: "/etc/x", Size: 2, Content: strings.NewReader("hi")}); err != nil {
		t.Fatal(err)
	}
	got, _ := h.File("/etc/x")
	if diff := cmp.Diff(hostfake.File{Mode: 0o600, Content: "hi"}, got); diff != "" {
		t.Error(diff)
	}
	if err := h.Upload(t.Context(), host.File{Path: "/etc/x", Size: 3, Content: strings.NewReader("hi")}); err == nil {
		t.Error("wrong size accepted")
	}
}
