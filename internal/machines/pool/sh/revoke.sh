# Removes a public key from a user's authorized_keys, in one rename.
#
#	$1  user
#	$2  the key: part of its line in authorized_keys
set -eu
[ "$(id -un)" = "$1" ] && home=$HOME || home=$(getent passwd "$1" | cut -d: -f6)
[ -n "$home" ] || { echo "there is no home directory of $1" >&2 && exit 1; }
[ -e "$home/.ssh/authorized_keys" ] || exit 0
file=$(readlink -f "$home/.ssh/authorized_keys")
grep -qsF -e "$2" "$file" || exit 0
cp -p "$file" "$file.kubeone"
grep -vF -e "$2" "$file" >"$file.kubeone" || [ $? = 1 ]
mv "$file.kubeone" "$file"
