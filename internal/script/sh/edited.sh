# stage restore-files: restores files that were edited or deleted to what a stage wrote, for the versions and settings
# that this host has.
#
# Variables, set by RestoreFilesParams in internal/plan/step/repair.go:
#
#	RESTORE  list of the files to restore
#	CLOSE    list of the files with keys whose owner and mode to restore

# The kubelet is stopped first. If the run is interrupted, a stopped kubelet is noticed; one that runs with settings
# that are no longer in its files is not. For containerd, DIRTY records the pending restart. containerd restarts only
# once systemd has its unit again, since another unit might end the containers.
stage_restore_files() {
	for file in $CLOSE; do close_file "$file"; done
	for file in $RESTORE; do
		case $file in
		/etc/kubernetes/manifests/*) die "$file is not restored: a static pod may need what was added to it" ;;
		esac
		kept_copy "$file" >/dev/null
	done
	UNITS=
	for unit in containerd kubelet; do systemctl is-active --quiet "$unit" || UNITS="$UNITS $unit"; done
	for file in $RESTORE; do
		[ -z "$(unit_of "$file")" ] || UNITS="${UNITS% kubelet} kubelet"
	done
	[ -n "$RESTORE$UNITS" ] || return 0
	case $UNITS in *kubelet) systemctl stop kubelet 2>/dev/null || true ;; esac
	for file in $RESTORE; do bring_back "$file"; done
	stage_restart_units
	for file in $RESTORE; do
		case $file in
		/etc/systemd/system/kubeone-*.timer) systemctl restart "${file##*/}" ;;
		esac
	done
}

# close_file FILE restricts a file with keys to root. It changes the owner first, because
# an owner may change the mode. A missing file is fine: the kubelet removes its former certificates.
close_file() {
	[ -f "$1" ] && [ ! -L "$1" ] || return 0
	say "closing $1"
	chown 0:0 "$1"
	chmod 0600 "$1"
}

# unit_of FILE prints the unit that reads the file only when it starts, if there is one.
unit_of() {
	case $1 in
	/etc/containerd/config.toml | /etc/systemd/system/containerd.service*) echo containerd ;;
	/var/lib/kubelet/config.yaml | /etc/systemd/system/kubelet.service*) echo kubelet ;;
	esac
}

# kept_copy FILE prints the path of the kept copy of a file.
kept_copy() {
	sum=
	[ ! -f "$FILES" ] || while read -r noted name; do
		[ "$name" != "$1" ] || sum=$noted
	done <"$FILES"
	printf '%s  %s\n' "$sum" "$KEPT/$sum" | sha256sum -c --status - 2>/dev/null ||
		die "this host no longer has a copy of what $1 was: kubeone upgrade --force makes it again"
	printf '%s\n' "$KEPT/$sum"
}

# bring_back FILE restores a file. Kernel settings take effect before the file has them.
bring_back() {
	say "restoring $1"
	COPY=$(kept_copy "$1")
	case $1 in
	/etc/sysctl.d/*) sysctl -q -e -p "$COPY" 2>/dev/null || say "warning: the kernel did not take every setting of $1" ;;
	/etc/modules-load.d/*) while read -r module; do modprobe "$module" 2>/dev/null || true; done <"$COPY" ;;
	esac
	DIRTY=
	[ "$(unit_of "$1")" != containerd ] || DIRTY=$RUNTIME_DIRTY
	put "$1" "$(stat -c %a "$COPY")" kept_text
	DIRTY=
}

kept_text() { cat "$COPY"; }
