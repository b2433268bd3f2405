package backup_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"kubeone/internal/etcd/backup"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/hostfake"
	"kubeone/internal/testutil/sshtest"
)

// bucket is a store with the part of S3 that keeping files needs.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	refuse  int // status of every answer; 0: none
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/vault/")
	content, found := b.objects[key]
	switch {
	case b.refuse != 0:
		w.WriteHeader(b.refuse)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>not you</Message></Error>")
	case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=ID/"):
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodPut:
		body := unchunked(r)
		if sum := md5.Sum(body); r.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b.objects[key] = body
		w.Header().Set("ETag", `"x"`)
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Query().Has("list-type"):
		b.list(w, r.URL.Query().Get("prefix"))
	case !found:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>")
	default:
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", "Sun, 01 Mar 2026 12:00:00 GMT")
		http.ServeContent(w, r, "", noon, bytes.NewReader(content))
	}
}

// unchunked returns a body without the signatures that clients insert between chunks if there is no TLS.
func unchunked(r *http.Request) []byte {
	if r.Header.Get("X-Amz-Decoded-Content-Length") == "" {
		body, _ := io.ReadAll(r.Body)
		return body
	}
	var body []byte
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		length, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, bad := strconv.ParseInt(length, 16, 64)
		if err != nil || bad != nil || n == 0 {
			return body
		}
		piece := make([]byte, n+2)
		if _, err := io.ReadFull(in, piece); err != nil {
			return body
		}
		body = append(body, piece[:n]...)
	}
}

func (b *bucket) list(w io.Writer, prefix string) {
	type object struct{ Key string }
	var out struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []object
	}
	for key := range b.objects {
		if strings.HasPrefix(key, prefix) {
			out.Contents = append(out.Contents, object{key})
		}
	}
	slices.SortFunc(out.Contents, func(a, b object) int { return strings.Compare(a.Key, b.Key) })
	_ = xml.NewEncoder(w).Encode(out)
}

func s3(t *testing.T, b *bucket) backup.Target {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return open(t, "s3://vault/kubeone/prod", environment(server.URL))
}

func environment(endpoint string) backup.TargetOptions {
	env := map[string]string{"AWS_ACCESS_KEY_ID": "ID", "AWS_SECRET_ACCESS_KEY": "KEY", "AWS_ENDPOINT_URL_S3": endpoint}
	return backup.TargetOptions{Getenv: func(name string) string { return env[name] }}
}

func open(t *testing.T, address string, s backup.TargetOptions) backup.Target {
	t.Helper()
	target, err := backup.OpenTarget(address, s)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// machine is a host whose commands run on this machine, in a folder of the test.
func machine(t *testing.T) (backup.Target, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "kept")
	server := sshtest.Start(t, sshtest.Options{Handler: sshtest.Shell()})
	pool := sshpool.New(sshpool.Options{
		HomeDir: t.TempDir(), SystemDir: t.TempDir(), Getenv: func(string) string { return "" },
	})
	t.Cleanup(func() { _ = pool.Close() })
	there := host.Target{Address: "127.0.0.1", Port: server.Port(), User: "keeper", AsUser: true,
		KeyFile: sshtest.WriteKey(t, "").Path, HostKeys: []ssh.PublicKey{server.HostKey()}}
	var got host.Target
	target := open(t, "ssh://keeper@nas:2222"+dir, backup.TargetOptions{Host: func(to host.Target) (host.Host, error) {
		got = to
		return pool.Host(there), nil
	}})
	if diff := cmp.Diff(host.Target{Address: "nas", User: "keeper", Port: 2222, AsUser: true}, got); diff != "" {
		t.Error(diff)
	}
	return target, dir
}

func TestEveryTargetKeepsGivesListsAndForgets(t *testing.T) {
	t.Parallel()
	nas, _ := machine(t)
	for name, target := range map[string]backup.Target{
		"folder": open(t, filepath.Join(t.TempDir(), "a", "b"), backup.TargetOptions{}), "ssh": nas,
		"s3": s3(t, &bucket{objects: map[string][]byte{}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if names, err := target.List(ctx); err != nil || len(names) > 0 {
				t.Fatalf("at first: %q, %v", names, err)
			}
			content := bytes.Repeat([]byte("\x00age\xff"), 40_000)
			for range 2 { // the second replaces the first
				if err := target.Put(ctx, "x.tar.age", bytes.NewReader(content), int64(len(content))); err != nil {
					t.Fatal(err)
				}
			}
			var got bytes.Buffer
			if err := target.Get(ctx, "x.tar.age", &got); err != nil || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d bytes came back, %v", got.Len(), err)
			}
			if names, err := target.List(ctx); err != nil || cmp.Diff([]string{"x.tar.age"}, names) != "" {
				t.Errorf("then: %q, %v", names, err)
			}
			if err := target.Get(ctx, "none", io.Discard); err == nil {
				t.Error("what is not there is given")
			}
			for range 2 {
				if err := target.Delete(ctx, "x.tar.age"); err != nil {
					t.Error(err)
				}
			}
			for _, bad := range []string{"", ".", "..", "a/b", "../x"} {
				if target.Put(ctx, bad, bytes.NewReader(nil), 0) == nil || target.Delete(ctx, bad) == nil ||
					target.Get(ctx, bad, io.Discard) == nil {
					t.Errorf("%q is taken for a name", bad)
				}
			}
		})
	}
}

func TestBackupsAreForTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	nas, dir := machine(t)
	folder := filepath.Join(t.TempDir(), "kept")
	for target, dir := range map[backup.Target]string{nas: dir, open(t, folder, backup.TargetOptions{}): folder} {
		if err := target.Put(t.Context(), "x", strings.NewReader("abc"), 3); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "x"): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
}

// short is content that ends early.
type short struct{}

func (short) ReadAt(p []byte, off int64) (int, error) {
	if off > 0 {
		return 0, errors.New("the disk failed")
	}
	return copy(p, "abc"), errors.New("the disk failed")
}

func TestWhatDoesNotArriveWholeIsNotThere(t *testing.T) {
	t.Parallel()
	nas, _ := machine(t)
	for name, target := range map[string]backup.Target{
		"folder": open(t, t.TempDir(), backup.TargetOptions{}), "ssh": nas,
		"s3": s3(t, &bucket{objects: map[string][]byte{}}),
	} {
		if err := target.Put(t.Context(), "x", short{}, 100); err == nil {
			t.Errorf("%s: no error", name)
		}
		if names, err := target.List(t.Context()); err != nil || len(names) > 0 {
			t.Errorf("%s: there are %q, %v", name, names, err)
		}
	}
}

func TestAltersOnTheWayAreFound(t *testing.T) {
	t.Parallel()
	h := hostfake.New(t, "nas", hostfake.Expect{Name: "make the folder"},
		hostfake.Expect{Name: "check the backup", ExitCode: 1, Stderr: "the stored backup differs from the sent one"})
	target := open(t, "ssh://keeper@nas/kept",
		backup.TargetOptions{Host: func(host.Target) (host.Host, error) { return h, nil }})
	if err := target.Put(t.Context(), "x", strings.NewReader("abc"), 3); err == nil ||
		!strings.Contains(err.Error(), "differs from the sent one") {
		t.Errorf("error %v", err)
	}
}

func TestKeepRemovesTheOldestOfThisClusterOnly(t *testing.T) {
	t.Parallel()
	target := open(t, t.TempDir(), backup.TargetOptions{})
	put := func(name string) {
		if err := target.Put(t.Context(), name, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	for day := 1; day <= 5; day++ {
		put(fmt.Sprintf("prod-2026030%dT000000Z.tar.age", day))
	}
	const last = "prod-20260305T000000Z.tar.age"
	others := []string{"prod-eu-20200101T000000Z.tar.age", "notes.txt"}
	for _, name := range others {
		put(name)
	}
	gone, later, err := backup.Keep(t.Context(), target, "prod", 2, last)
	if err != nil || later != nil {
		t.Fatal(err, later)
	}
	if diff := cmp.Diff([]string{
		"prod-20260303T000000Z.tar.age", "prod-20260302T000000Z.tar.age", "prod-20260301T000000Z.tar.age",
	}, gone); diff != "" {
		t.Error(diff)
	}
	left, err := target.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{
		"notes.txt", "prod-20260304T000000Z.tar.age", "prod-20260305T000000Z.tar.age",
		"prod-eu-20200101T000000Z.tar.age",
	}, left); diff != "" {
		t.Error(diff)
	}
	const made = "prod-20260304T235900Z.tar.age" // by a clock that is a minute late
	put(made)
	if gone, later, err := backup.Keep(t.Context(), target, "prod", 1, made); err != nil || later != nil ||
		!slices.Equal(gone, []string{"prod-20260304T000000Z.tar.age"}) {
		t.Errorf("gone are %q, later %q, %v", gone, later, err)
	}
	for _, c := range []struct {
		keep int
		made string
	}{{0, last}, {1, ""}, {1, "prod-eu-20200101T000000Z.tar.age"}} {
		if _, _, err := backup.Keep(t.Context(), target, "prod", c.keep, c.made); err == nil {
			t.Errorf("keep %d after %q is no error", c.keep, c.made)
		}
	}
}

// Someone who may write to a target but not delete there cannot get real backups deleted by adding names with later
// times.
func TestNamesOfLaterTimesDoNotCountAndStay(t *testing.T) {
	t.Parallel()
	target := open(t, t.TempDir(), backup.TargetOptions{})
	put := func(name string) {
		if err := target.Put(t.Context(), name, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	genuine := []string{
		"prod-20260305T000000Z.tar.age", "prod-20260304T000000Z.tar.age", "prod-20260303T000000Z.tar.age",
	}
	forged := []string{
		"prod-99991231T235959Z.tar.age", "prod-20270101T000000Z.tar.age", "prod-20260305T000501Z.tar.age",
	}
	for _, name := range append(genuine, forged...) {
		put(name)
	}
	gone, later, err := backup.Keep(t.Context(), target, "prod", 2, genuine[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{genuine[2:], forged}, [][]string{gone, later}); diff != "" {
		t.Error(diff)
	}
	left, err := target.List(t.Context())
	if err != nil || len(left) != 5 || slices.Contains(left, genuine[2]) {
		t.Errorf("left are %q, %v", left, err)
	}
}

// A store controls the length of its files; the space they take here is bounded.
func TestAFetchIsBounded(t *testing.T) {
	t.Parallel()
	nas, _ := machine(t)
	for name, target := range map[string]backup.Target{
		"folder": open(t, t.TempDir(), backup.TargetOptions{}), "ssh": nas,
		"s3": s3(t, &bucket{objects: map[string][]byte{}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := strings.Repeat("x", 100_000)
			if err := target.Put(t.Context(), "b.tar.age", strings.NewReader(content), 100_000); err != nil {
				t.Fatal(err)
			}
			path, err := backup.Fetch(t.Context(), target, "b.tar.age", t.TempDir(), 100_000)
			if got, _ := os.ReadFile(path); err != nil || string(got) != content || filepath.Base(path) != "b.tar.age" {
				t.Errorf("%s has %d bytes, %v", path, len(got), err)
			}
			path, err = backup.Fetch(t.Context(), target, "b.tar.age", t.TempDir(), 99_999)
			var store *backup.StoreError
			if !errors.As(err, &store) || !strings.Contains(err.Error(), "larger than 99999 bytes") {
				t.Errorf("error %v", err)
			}
			if got, err := os.ReadFile(path); err != nil || len(got) > 99_999 {
				t.Errorf("%s has %d bytes, %v", path, len(got), err)
			}
			for _, strange := range []string{"", "..", "../b.tar.age"} {
				if _, err := backup.Fetch(t.Context(), target, strange, t.TempDir(), 1); err == nil {
					t.Errorf("%q is the name of a file", strange)
				}
			}
		})
	}
}

func TestInvalidTargets(t *testing.T) {
	t.Parallel()
	set := environment("https://s3.example.com")
	unset := backup.TargetOptions{Getenv: func(string) string { return "" }}
	for address, test := range map[string]struct {
		in   backup.TargetOptions
		says string
	}{
		"":                        {set, "the path is missing"},
		"ftp://x/y":               {set, `"ftp" is not a known kind of target`},
		"s3://":                   {set, "is not a backup target"},
		"ssh://me@nas":            {set, "it contains no folder"},
		"ssh://me:hunter2@nas/x":  {set, "a password in the URL cannot be kept secret"},
		"s3://ID:hunter2@vault/x": {set, "credentials in the URL cannot be kept secret"},
		"s3://vault/x":            {unset, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		"s3://vault/y":            {environment("vault.example.com"), "AWS_ENDPOINT_URL_S3 is not a URL"},
		"s3://vault/z":            {environment("ftp://me:hunter2@vault"), "AWS_ENDPOINT_URL_S3"},
		"ssh://me:hunter2@na s/x": {set, "is not a backup target"},
	} {
		_, err := backup.OpenTarget(address, test.in)
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v, want one that says %q", address, err, test.says)
		}
	}
}

func TestAStoreThatRefusesIsNamed(t *testing.T) {
	t.Parallel()
	target := s3(t, &bucket{refuse: http.StatusForbidden})
	ctx := context.Background()
	for name, err := range map[string]error{
		"put": target.Put(ctx, "x", strings.NewReader("a"), 1), "get": target.Get(ctx, "x", io.Discard),
		"delete": target.Delete(ctx, "x"),
		"list":   func() error { _, err := target.List(ctx); return err }(),
	} {
		var store *backup.StoreError
		if !errors.As(err, &store) || store.Target != "s3://vault/kubeone/prod" ||
			!strings.Contains(err.Error(), "not you") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestSplitTarget(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]string{
		"ssh://me@nas/srv/prod.tar.age": {"ssh://me@nas/srv", "prod.tar.age"},
		"s3://vault/a/b.tar.age":        {"s3://vault/a", "b.tar.age"},
		"s3://vault/b.tar.age":          {"s3://vault", "b.tar.age"}, "kept/b.tar.age": {"kept", "b.tar.age"},
	} {
		if target, name := backup.SplitTarget(address); target != want[0] || name != want[1] {
			t.Errorf("%s is %q in %q", address, name, target)
		}
	}
}
