package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/host"
)

// sshTarget is a backup target in a directory on a machine outside the cluster.
type sshTarget struct {
	shown  string
	folder string
	host   host.Host
}

func openSSH(u *url.URL, s TargetOptions) (Target, error) {
	folder := path.Clean("/" + u.Path)
	if folder == "/" {
		return nil, errors.New("backup target: it contains no folder; write ssh://user@host/folder")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("backup target: a password in the URL cannot be kept secret; use an SSH key")
	}
	t := host.Target{Address: u.Hostname(), User: u.User.Username(), AsUser: true}
	if u.Port() != "" {
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			return nil, fmt.Errorf("backup target: %q is not a port", u.Port())
		}
		t.Port = port
	}
	h, err := s.Host(t)
	if err != nil {
		return nil, err
	}
	return &sshTarget{shown: u.Redacted(), folder: folder, host: h}, nil
}

// copyWithin limits the time for the transfer of one backup.
const copyWithin = time.Hour

// String implements Target.
func (t *sshTarget) String() string { return t.shown }

// Put implements Target.
func (t *sshTarget) Put(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	file, part := path.Join(t.folder, name), path.Join(t.folder, "."+name+".part")
	sum := sha256.New()
	body := io.TeeReader(io.NewSectionReader(content, 0, size), sum)
	// Upload creates parent directories readable by all; this folder is private.
	if _, err := t.runScript(ctx, "make the folder", `umask 077; mkdir -p -- "$1"`, t.folder); err != nil {
		return err
	}
	if err := t.host.Upload(ctx, host.File{Path: part, Mode: 0o600, Size: size, Content: body}); err != nil {
		return fmt.Errorf("%s: %w", t.shown, err)
	}
	const settle = `set -eu
case $(sha256sum <"$1") in
"$3"*) mv -f -- "$1" "$2" ;;
*) rm -f -- "$1"; echo "the stored backup differs from the sent one" >&2; exit 1 ;;
esac`
	_, err := t.runScript(ctx, "check the backup", settle, part, file, hex.EncodeToString(sum.Sum(nil)))
	return err
}

// Get implements Target.
func (t *sshTarget) Get(ctx context.Context, name string, w io.Writer) error {
	if err := checkName(name); err != nil {
		return err
	}
	_, err := t.host.Run(ctx, host.Cmd{
		Name: "read " + name, Script: `cat -- "$1"`, Args: []string{path.Join(t.folder, name)}, Stdout: w,
		Timeout: copyWithin,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", t.shown, err)
	}
	return nil
}

// List implements Target.
func (t *sshTarget) List(ctx context.Context) ([]string, error) {
	out, err := t.runScript(ctx, "list the backups", `[ ! -d "$1" ] || ls -1 -- "$1"`, t.folder)
	return strings.Fields(out), err
}

// Delete implements Target.
func (t *sshTarget) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	_, err := t.runScript(ctx, "remove "+name, `rm -f -- "$1"`, path.Join(t.folder, name))
	return err
}

func (t *sshTarget) runScript(ctx context.Context, name, script string, args ...string) (string, error) {
	res, err := t.host.Run(ctx, host.Cmd{Name: name, Script: script, Args: args})
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.shown, err)
	}
	return string(res.Stdout), nil
}
