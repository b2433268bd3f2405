# authorize.sh USER LINE has a key let in as USER: LINE is added to its authorized_keys, unless it is there.
set -eu
[ "$(id -un)" = "$1" ] && home=$HOME || home=$(getent passwd "$1" | cut -d: -f6)
[ -n "$home" ] || { echo "there is no home directory of $1" >&2 && exit 1; }
file=$home/.ssh/authorized_keys
! grep -qsxF -e "$2" "$file" || exit 0
umask 077
mkdir -p "$home/.ssh"
# A last line without its end, as after a full disk, is left to itself.
[ ! -s "$file" ] || [ -z "$(tail -c 1 "$file")" ] || echo >>"$file"
printf '%s\n' "$2" >>"$file"
[ "$(id -un)" = "$1" ] || chown "$1:" "$home/.ssh" "$file"
! command -v restorecon >/dev/null 2>&1 || restorecon -R "$home/.ssh"
