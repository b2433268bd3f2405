# What a stage takes away from a host, and how it is kept. Mount points and links stay: what is in them is on another disk, perhaps.

# fixed PATH succeeds when the path is a mount point or a link: then it stays, and what is in it is on another disk, perhaps.
fixed() { [ -h "$1" ] || grep -qs "^[^ ]* [^ ]* [^ ]* [^ ]* $1 " /proc/self/mountinfo; }

# dated PREFIX prints the path with the time in its name, which nothing has yet.
dated() {
	free=$1$(date -u +%Y%m%dT%H%M%SZ)
	while [ -e "$free" ]; do free=$free.1; done
	printf '%s\n' "$free"
}

# keep_as PATH TO renames, where both are in one file system. Else it copies, and what was copied goes once the copy is whole, and on
# disk.
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

# move_aside WHY PATH... keeps what is there in /var/lib/kubeone-old, dated. What is in a mount point stays on its disk, in a
# directory kubeone-WHY-TIME: each of these is done or not, and a rename, which takes no room, within one file system. Only what a recovery keeps, as
# "old", is ever taken back by a program.
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

# stays NAME succeeds for what stays in a directory that is emptied: what was kept there, and what the file system has.
stays() { case $1 in kubeone-old-* | kubeone-lost-* | kubeone-reset-* | lost+found) ;; *) return 1 ;; esac }

# move_within WHY DIRECTORY moves all that is in it into a directory of its own there.
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

# delete PATH... deletes what is there; of a mount point or a link, what is in it.
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

# stage purge: what was kept of a host's former lives is deleted. The host is bare: of a member, somebody may need it yet.
stage_purge() {
	[ ! -e "$MARKER" ] || die "this host is part of a cluster: reset it first"
	delete /var/lib/kubeone-old
	for kept in /var/lib/etcd /etc/kubernetes "$SNAPSHOTS"; do
		rm -rf "$kept"/kubeone-old-* "$kept"/kubeone-lost-* "$kept"/kubeone-reset-*
	done
}
