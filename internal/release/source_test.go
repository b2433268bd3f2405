package release

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCreateCountsAFileWhoseServerDoesNotTellItsSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testWant(), 1)
	silent := roundTrip(func(req *http.Request) (*http.Response, error) {
		resp, err := w.RoundTrip(req)
		if err == nil && req.Method == http.MethodHead && !strings.HasPrefix(req.URL.Path, "/v2/") {
			resp.ContentLength = -1
		}
		return resp, err
	})
	got := createBytes(t, Source{Transport: silent, RetryPause: time.Millisecond}, testWant())
	if want := createBytes(t, w.source(), testWant()); !bytes.Equal(want, got) {
		t.Error("the bundle differs")
	}
}

func TestRedirectToPlainHTTPIsRefused(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"http://dl.k8s.io/x", "https://cdn.example.com/x"} {
		redirecting := roundTrip(func(req *http.Request) (*http.Response, error) {
			resp := &http.Response{
				StatusCode: http.StatusOK,
				Body:       io.NopCloser(strings.NewReader("content")),
				Request:    req,
				Header:     http.Header{},
			}
			if req.URL.Path == "/start" {
				resp.StatusCode = http.StatusFound
				resp.Header.Set("Location", target)
			}
			return resp, nil
		})
		text, err := Source{Transport: redirecting}.newFetcher().fetchText(t.Context(), "https://dl.k8s.io/start")
		if strings.HasPrefix(target, "https:") {
			if err != nil || text != "content" {
				t.Errorf("to %s: %q, %v", target, text, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "from HTTPS to http://dl.k8s.io") {
			t.Errorf("to %s: %q, %v; want an error", target, text, err)
		}
	}
}

func TestOnlyPassingFailuresAreTransient(t *testing.T) {
	t.Parallel()
	wrap := func(err error) error {
		return fmt.Errorf("fetch: %w", &url.Error{Op: "Get", URL: "https://x", Err: err})
	}
	tests := []struct {
		err  error
		want bool
	}{
		{wrap(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), true},
		{wrap(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), false},
		{wrap(&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true, IsTemporary: true}}), false},
		{wrap(&net.OpError{Op: "dial", Err: &net.DNSError{IsTemporary: true}}), true},
		{wrap(x509.UnknownAuthorityError{}), false},
		{wrap(errPlainHTTP), false},
		{wrap(context.DeadlineExceeded), false},
		{wrap(&stallError{time.Second}), true},
		{io.ErrUnexpectedEOF, true},
		{&statusError{Code: 404}, false},
		{&statusError{Code: 503}, true},
		{&DigestError{}, false},
		{errors.New("anything else"), false},
	}
	for _, test := range tests {
		if got := isTransient(test.err); got != test.want {
			t.Errorf("transient(%v) = %v, want %v", test.err, got, test.want)
		}
	}
}

func TestFetchErrorAdvisesByCause(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err     error
		offline bool
	}{
		"refused":      {&url.Error{Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, true},
		"no such host": {&url.Error{Err: &net.DNSError{IsNotFound: true}}, true},
		"timeout":      {&url.Error{Err: &stallError{time.Second}}, true},
		"certificate":  {&url.Error{Err: x509.UnknownAuthorityError{}}, false},
		"404":          {&statusError{Code: 404}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &FetchError{Failures: []Failure{{Err: test.err}}}
			if e.Offline() != test.offline || strings.Contains(e.Error(), "bundle create") != test.offline {
				t.Errorf("offline %v, want %v: %v", e.Offline(), test.offline, e)
			}
			if !errors.Is(e, test.err) {
				t.Error("the cause is not wrapped")
			}
		})
	}
}

func TestSupportedMinorsAreComplete(t *testing.T) {
	t.Parallel()
	for _, minor := range Supported() {
		v, err := VersionsFor(minor + ".0")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{v.Containerd, v.Runc, v.CNIPlugins, v.Crictl, v.Etcd, v.Pause} {
			if s == "" || strings.HasPrefix(s, "v") {
				t.Errorf("%s: version %q in %+v", minor, s, v)
			}
		}
		if !strings.HasPrefix(v.CoreDNS, "v") {
			t.Errorf("%s: tags of CoreDNS begin with v: %+v", minor, v)
		}
	}
}
