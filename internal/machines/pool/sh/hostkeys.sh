# Prints the public keys of this host's SSH server: those in its configuration, or else those in /etc/ssh.
set -eu
files=$(sshd -T 2>/dev/null | sed -n 's/^hostkey \(.*\)$/\1.pub/p') || files=
[ -n "$files" ] || files=$(echo /etc/ssh/ssh_host_*_key.pub)
for file in $files; do
	[ ! -r "$file" ] || head -c 4096 "$file"
done
