# Adds a public key to a user's authorized_keys, unless it is there.
#
#	$1  user
#	$2  line for authorized_keys
set -eu
[ "$(id -un)" = "$1" ] && home=$HOME || home=$(getent passwd "$1" | cut -d: -f6)
[ -n "$home" ] || { echo "there is no home directory of $1" >&2 && exit 1; }
file=$home/.ssh/authorized_keys
! grep -qsxF -e "$2" "$file" || exit 0
umask 077
mkdir -p "$home/.ssh"
# Complete a last line without a line end, as after a full disk.
[ ! -s "$file" ] || [ -z "$(tail -c 1 "$file")" ] || echo >>"$file"
printf '%s\n' "$2" >>"$file"
[ "$(id -un)" = "$1" ] || chown "$1:" "$home/.ssh" "$file"
! command -v restorecon >/dev/null 2>&1 || restorecon -R "$home/.ssh"
