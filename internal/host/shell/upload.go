package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/host"
)

// uploadScript receives a file: $1 path, $2 mode, $3 size, $4 owner or "". It chooses the name of the temporary file
// before creating it, so that no signal leaves the file behind. set -C creates the file exclusively, so that links of
// other users are not followed. The file has its final owner and mode before its first byte. If the content has the
// wrong size because the connection broke, nothing changes. The file is synced to disk before it replaces the old one.
// A directory that has to be created is as private as the file.
const uploadScript = `set -eu
umask 077
dir=${1%/*}
[ -d "$1" ] && { echo "$1 is a directory" >&2; exit 1; }
[ -d "${dir:-/}" ] || (case $2 in *00) ;; *) umask 022 ;; esac; mkdir -p -- "$dir")
tmp=$dir/.kubeone.$$
trap 'rm -f -- "$tmp"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
rm -f -- "$tmp"
(set -C; : >"$tmp")
[ -z "$4" ] || chown -- "$4" "$tmp"
chmod -- "$2" "$tmp"
cat >"$tmp"
got=$(wc -c <"$tmp")
[ "$got" -eq "$3" ] || { echo "received $got bytes of $3" >&2; exit 1; }
sync -- "$tmp"
mv -f -- "$tmp" "$1"
trap - EXIT`

// The time limit of a transfer is uploadBase, plus one second for every uploadSlowest bytes.
const (
	uploadBase    = 2 * time.Minute
	uploadSlowest = 256 << 10 // bytes a second
)

// errSize means that the content of a File does not have its Size.
var errSize = errors.New("the content does not have the announced size")

// Upload sends a file to any host with one command.
func Upload(ctx context.Context, h host.Host, f host.File) error {
	if err := validateFile(f); err != nil {
		return &host.Error{Class: host.Config, Host: h.Name(), What: "upload " + strconv.Quote(f.Path), Err: err}
	}
	mode := f.Mode.Perm()
	if mode == 0 {
		mode = 0o600
	}
	content := &measured{r: f.Content, size: f.Size, progress: f.Progress}
	_, err := h.Run(ctx, host.Cmd{
		Name:    "upload " + f.Path,
		Script:  uploadScript,
		Args:    []string{f.Path, fmt.Sprintf("%04o", mode), strconv.FormatInt(f.Size, 10), f.Owner},
		Stdin:   content,
		Timeout: uploadBase + time.Duration(f.Size/uploadSlowest)*time.Second,
		Secret:  true,
	})
	if failed := content.contentError(); err != nil && failed != nil {
		return &host.Error{Class: host.Config, Host: h.Name(), What: "upload " + f.Path, Err: failed}
	}
	return err
}

func validateFile(f host.File) error {
	switch {
	case !path.IsAbs(f.Path) || f.Path != path.Clean(f.Path) || f.Path == "/":
		return fmt.Errorf("%q is not a clean absolute path of a file", f.Path)
	case strings.ContainsAny(f.Path+f.Owner, "\x00\n\r") || strings.HasPrefix(f.Owner, "-"):
		return errors.New("unsupported characters in the path or the owner")
	case f.Mode&^fs.ModePerm != 0:
		return fmt.Errorf("mode %v has more than permission bits", f.Mode)
	case f.Size < 0 || f.Content == nil && f.Size > 0:
		return errors.New("no content")
	}
	return nil
}
