package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/host"
)

// Target is a place off the hosts where backups are kept, by name. A backup is there whole or not at all. Every error
// names the target.
type Target interface {
	// String is the target as it is shown; it holds no secret.
	String() string
	// Put stores a file; one of that name is replaced. It is stored only if what arrived is what was sent.
	Put(ctx context.Context, name string, content io.ReaderAt, size int64) error
	// Get writes a file to w.
	Get(ctx context.Context, name string, w io.Writer) error
	// List returns the names of all files there, in no order; a target that does not exist yet has none.
	List(ctx context.Context) ([]string, error)
	// Delete removes a file; one that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// StoreError is a store that could not be reached or refused what it was asked.
type StoreError struct {
	Target, What string
	Err          error
}

// Error names the target.
func (e *StoreError) Error() string { return e.Target + ": " + e.What + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// TargetOptions is what opening a target may need.
type TargetOptions struct {
	// Host makes a host of an ssh target; its commands run as the user that logs in.
	Host   func(host.Target) (host.Host, error)
	Getenv func(string) string
}

// OpenTarget understands a directory, "ssh://user@host[:port]/directory" and "s3://bucket/prefix". It connects
// to nothing yet.
func OpenTarget(target string, s TargetOptions) (Target, error) {
	scheme, _, isURL := strings.Cut(target, "://")
	if !isURL {
		return openDirectory(target)
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("backup target: %s is no target; it is a folder, ssh://user@host/folder or "+
			"s3://bucket/prefix", shown(target))
	}
	switch scheme {
	case "ssh":
		return openSSH(u, s)
	case "s3":
		return openS3(u, s.Getenv)
	}
	return nil, fmt.Errorf("backup target: %q is not a kind of target that is known; it is a folder, "+
		"ssh://user@host/folder or s3://bucket/prefix", scheme)
}

// shown is a target that cannot be parsed, without what may be a password.
func shown(target string) string {
	if at := strings.LastIndex(target, "@"); at >= 0 {
		return "…" + target[at:]
	}
	return strconv.Quote(target)
}

// SplitTarget splits the address of one backup in a target into the target and the backup's name.
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

// Stored returns the names of this cluster's backups in a target, the newest first.
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
	slices.Sort(ours) // the time in a name is of fixed width
	slices.Reverse(ours)
	return ours, nil
}

// Keep deletes this cluster's backups in a target but the newest keep, as their names have it, and returns the names of
// those deleted. Everything else there is left alone. The one just made is never deleted, also where a clock was wrong
// and its name is not the newest; keep below 1 is an error.
func Keep(ctx context.Context, t Target, cluster string, keep int, made string) ([]string, error) {
	if keep < 1 {
		return nil, errors.New("one backup is kept at least")
	}
	names, err := Stored(ctx, t, cluster)
	if err != nil || len(names) <= keep {
		return nil, err
	}
	var gone []string
	for _, name := range names[keep:] {
		if name == made {
			continue
		}
		if err := t.Delete(ctx, name); err != nil {
			return gone, err
		}
		gone = append(gone, name)
	}
	return gone, nil
}

// checkName refuses what is not the plain name of a file.
func checkName(name string) error {
	if name == "" || name != filepath.Base(name) || strings.ContainsAny(name, "/\\\x00\n") || name == "." ||
		name == ".." {
		return fmt.Errorf("%q is not the name of a backup", name)
	}
	return nil
}
