package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/host"
)

// Target stores backups by name outside the hosts. A backup is stored completely or not at all. Every error names the
// target.
type Target interface {
	// String returns the target for display, without secrets.
	String() string
	// Put stores or replaces a file, and verifies the stored content.
	Put(ctx context.Context, name string, content io.ReaderAt, size int64) error
	// Get writes a file to w.
	Get(ctx context.Context, name string, w io.Writer) error
	// List returns the names of all files, in any order. It returns none if the target does not exist yet.
	List(ctx context.Context) ([]string, error)
	// Delete removes a file. It returns nil if there is no such file.
	Delete(ctx context.Context, name string) error
}

// StoreError means that a store could not be reached or refused a request.
type StoreError struct {
	Target, What string
	Err          error
}

// Error names the target.
func (e *StoreError) Error() string { return e.Target + ": " + e.What + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// TargetOptions are the options for opening a target.
type TargetOptions struct {
	// Host returns the host of an ssh target; its commands run as the login user.
	Host   func(host.Target) (host.Host, error)
	Getenv func(string) string
}

// OpenTarget returns the target with that address: a directory, "ssh://user@host[:port]/directory" or
// "s3://bucket/prefix". It does not connect to it.
func OpenTarget(target string, s TargetOptions) (Target, error) {
	scheme, _, isURL := strings.Cut(target, "://")
	if !isURL {
		return openDirectory(target)
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("backup target: %s is not a backup target; it is a folder, ssh://user@host/folder or "+
			"s3://bucket/prefix", redactTarget(target))
	}
	switch scheme {
	case "ssh":
		return openSSH(u, s)
	case "s3":
		return openS3(u, s.Getenv)
	}
	return nil, fmt.Errorf("backup target: %q is not a known kind of target; use a folder, "+
		"ssh://user@host/folder or s3://bucket/prefix", scheme)
}

// redactTarget returns an invalid target address without anything that could be a password.
func redactTarget(target string) string {
	if at := strings.LastIndex(target, "@"); at >= 0 {
		return "…" + target[at:]
	}
	return strconv.Quote(target)
}

// SplitTarget splits the address of one backup into the target and the backup's name.
func SplitTarget(address string) (target, name string) {
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		at := strings.LastIndex(rest, "/")
		if at < 0 {
			return address, ""
		}
		return scheme + "://" + rest[:at], rest[at+1:]
	}
	return filepath.Dir(address), filepath.Base(address)
}

// Stored returns the names of the backups of this cluster in a target, newest first.
func Stored(ctx context.Context, t Target, cluster string) ([]string, error) {
	all, err := t.List(ctx)
	if err != nil {
		return nil, err
	}
	var ours []string
	for _, name := range all {
		if _, ok := ParseFileName(cluster, name); ok {
			ours = append(ours, name)
		}
	}
	slices.Sort(ours) // times in names have a fixed width
	slices.Reverse(ours)
	return ours, nil
}

// Keep deletes the oldest backups of this cluster from a target, so that keep of them are left, and returns the names
// of the deleted ones. It never deletes the backup made, which was just written, nor other files. Backups with a time
// more than clockSkew later than made are not counted and not deleted: a clock was wrong, or an attacker put them there
// so that others get deleted. Their names are returned as later. Keep returns an error if keep is below 1 or made is
// not the name of a backup of this cluster.
func Keep(ctx context.Context, t Target, cluster string, keep int, made string) (removed, later []string, err error) {
	now, ok := ParseFileName(cluster, made)
	switch {
	case keep < 1:
		return nil, nil, errors.New("at least one backup must be kept")
	case !ok:
		return nil, nil, fmt.Errorf("%q is not the name of a backup of %s", made, cluster)
	}
	names, err := Stored(ctx, t, cluster)
	if err != nil {
		return nil, nil, err
	}
	kept := 0
	for _, name := range names {
		switch at, _ := ParseFileName(cluster, name); {
		case at.After(now.Add(clockSkew)):
			later = append(later, name)
			continue
		case kept < keep, name == made:
			kept++
			continue
		}
		if err := t.Delete(ctx, name); err != nil {
			return removed, later, err
		}
		removed = append(removed, name)
	}
	return removed, later, nil
}

// MaxFetched is the usual limit for Fetch, in bytes: 8 GiB, the recommended maximum size of an etcd database, plus a
// margin. Source: https://etcd.io/docs/v3.6/dev-guide/limit/.
const MaxFetched = 8<<30 + 64<<20

// errTooLarge stops the transfer of a file that is too large for a backup.
var errTooLarge = errors.New("it is too large")

// Fetch writes a backup from a target to a new file of the same name in a directory and returns the path of the file.
// If the backup is larger than most bytes, it returns an error and leaves what it has written.
func Fetch(ctx context.Context, t Target, name, folder string, most int64) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // #nosec G304 -- a plain name
	if err != nil {
		return "", err
	}
	to := &limited{to: f, left: most}
	err = t.Get(ctx, name, to)
	if to.full {
		err = &StoreError{
			Target: t.String(), What: "read " + name,
			Err: fmt.Errorf("%w (larger than %d bytes); if it is a backup, download it with another tool and pass "+
				"the path of the local file", errTooLarge, most),
		}
	}
	return path, errors.Join(err, f.Close())
}

// limited accepts bytes up to its limit, then fails.
type limited struct {
	to   io.Writer
	left int64
	full bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.full = l.full || int64(len(p)) > l.left; l.full {
		return 0, errTooLarge
	}
	n, err := l.to.Write(p)
	l.left -= int64(n)
	return n, err
}

// checkName returns an error unless the name is a plain file name.
func checkName(name string) error {
	if name == "" || name != filepath.Base(name) || strings.ContainsAny(name, "/\\\x00\n") || name == "." ||
		name == ".." {
		return fmt.Errorf("%q is not the name of a backup", name)
	}
	return nil
}
