# Prints texts of files of one host, for who shows what will change in them. It changes nothing.
#
#	$1  paths and patterns, blanks between; of each, 64 files at most are printed
#	$2  paths of which what the host has kept is printed as well
#
# Output: "text", a tab and a path, and then the file's lines, each behind a "="; "kept" likewise; "cut", a tab and a path of
# one that is too long. "kubeone-settings 1" comes first and "end 1" last, or else something was lost.
set -u
LC_ALL=C
export LC_ALL
tab=$(printf '\t')
ours=/etc/kubeone
most=65536

# show NAME PATH FILE prints a file as that of PATH.
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
for wanted in $2; do # paths, and no patterns
	[ -r $ours/files ] || break
	while read -r sum file; do
		[ "$file" != "$wanted" ] || show kept "$file" "$ours/kept/$sum"
	done <$ours/files
done
printf 'end%s1\n' "$tab"
