# Moving and deleting what a stage takes from a host. Mount points and links stay: their content may be on another disk.
#
# SNAPSHOTS is set in snapshot.sh, MARKER by script.go.

# fixed PATH succeeds if the path is a mount point or a link, which must stay.
fixed() { [ -h "$1" ] || grep -qs "^[^ ]* [^ ]* [^ ]* [^ ]* $1 " /proc/self/mountinfo; }

# dated PREFIX prints a path of PREFIX and the time (UTC) that does not exist yet.
dated() {
	free=$1$(date -u +%Y%m%dT%H%M%SZ)
	while [ -e "$free" ]; do free=$free.1; done
	printf '%s\n' "$free"
}

# keep_as PATH TO renames PATH if both are in one file system. Otherwise it copies PATH, and deletes it once the
# complete copy is on disk.
keep_as() {
	if [ "$(stat -c %d "$1")" = "$(stat -c %d "${2%/*}")" ]; then
		mv "$1" "$2"
		return 0
	fi
	rm -rf "$2.part"
	cp -a "$1" "$2.part"
	on_disk "$2.part"
	mv "$2.part" "$2"
	on_disk "${2%/*}"
	mv "$1" "$1.kubeone-gone"
	rm -rf "$1.kubeone-gone"
}

# move_aside WHY PATH... moves paths to a dated directory in /var/lib/kubeone-old. The content of a mount point stays on
# its disk, in a directory kubeone-WHY-TIME: a rename is atomic and needs no space. WHY is old for a recovery or a join,
# and reset for a reset; kubeone takes back only what is named old.
move_aside() {
	why=$1
	shift
	aside=$(dated /var/lib/kubeone-old/)
	for path in "$@"; do
		rm -rf "$path.kubeone-gone"
		[ -e "$path" ] || continue
		if fixed "$path"; then
			move_within "$why" "$path"
			continue
		fi
		private "$aside"
		to=$aside/$(printf '%s' "${path#/}" | tr / -)
		[ "$why" = old ] || to=$to-$why
		keep_as "$path" "$to"
		say "$path is now $to"
	done
}

# stays NAME succeeds for entries that stay in a directory that is emptied: what kubeone keeps, and lost+found.
stays() { case $1 in kubeone-old-* | kubeone-lost-* | kubeone-reset-* | lost+found) ;; *) return 1 ;; esac }

# move_within WHY DIRECTORY moves the content of a directory into a new subdirectory.
move_within() {
	within=$(dated "$2/kubeone-$1-")
	for entry in "$2"/* "$2"/.[!.]*; do
		[ -e "$entry" ] || continue
		if stays "${entry##*/}"; then continue; fi
		private "$within"
		mv "$entry" "$within/"
		say "$entry is now $within/${entry##*/}"
	done
}

# delete PATH... deletes paths. Of a mount point or a link it deletes only the content.
delete() {
	for path in "$@"; do
		if ! fixed "$path"; then
			rm -rf "$path"
			continue
		fi
		for entry in "$path"/* "$path"/.[!.]*; do
			if ! stays "${entry##*/}"; then rm -rf "$entry"; fi
		done
	done
}

# stage purge: deletes what earlier stages kept. The host must be bare: a member may still need what was kept.
stage_purge() {
	[ ! -e "$MARKER" ] || die "this host is part of a cluster: reset it first"
	delete /var/lib/kubeone-old
	for kept in /var/lib/etcd /etc/kubernetes "$SNAPSHOTS"; do
		rm -rf "$kept"/kubeone-old-* "$kept"/kubeone-lost-* "$kept"/kubeone-reset-*
	done
}
