# revoke.sh USER BODY takes a key out of the authorized_keys of USER. The file changes all at once, or not at all.
set -eu
[ "$(id -un)" = "$1" ] && home=$HOME || home=$(getent passwd "$1" | cut -d: -f6)
file=$(readlink -f "$home/.ssh/authorized_keys") || exit 0
grep -qsF "$2" "$file" || exit 0
cp -p "$file" "$file.kubeone"
grep -vF "$2" "$file" >"$file.kubeone" || [ $? = 1 ]
mv "$file.kubeone" "$file"
