# Prints the content of configuration files of this host, for the preview of their changes. It changes nothing.
#
#	$1  paths and patterns, separated by spaces; it prints 64 files of each at most
#	$2  paths, separated by spaces, whose kept copies it prints as well
#
# Output: "text", a tab and a path, then the file's lines, each after a "="; the same with "kept" for a copy; "cut", a
# tab and a path after a file that is longer than 64 KiB. The first line is "kubeone-settings 1" and the last "end 1",
# unless output was lost.
set -u
LC_ALL=C
export LC_ALL
tab=$(printf '\t')
ours=/etc/kubeone
most=65536

# show NAME PATH FILE prints the content of FILE as text or copy (NAME) of PATH.
show() {
	[ -f "$3" ] || return 0
	printf '%s\t%s\n' "$1" "$2"
	head -c $most "$3" | sed 's/^/=/'
	printf '\n'
	[ "$(head -c $((most + 1)) "$3" | wc -c)" -le $most ] || printf 'cut\t%s\n' "$2"
}

printf 'kubeone-settings%s1\n' "$tab"
set -f
for pattern in $1; do
	set +f
	shown=0
	for file in $pattern; do
		[ $shown -lt 64 ] || break
		show text "$file" "$file"
		shown=$((shown + 1))
	done
done
for wanted in $2; do # set -f: paths, not patterns
	[ -r $ours/files ] || break
	while read -r sum file; do
		[ "$file" != "$wanted" ] || show kept "$file" "$ours/kept/$sum"
	done <$ours/files
done
printf 'end%s1\n' "$tab"
