# stage restore-files: what somebody has changed or deleted becomes again what a stage wrote, in the version and with the settings
# that this host has. The kubelet is stopped first: who is interrupted leaves one that does not run, which is seen, and not one that
# goes on with what is not in its files any more; and DIRTY says that containerd must start anew. That is restarted only once systemd
# knows its own unit again: by another one it might end the containers.
stage_restore_files() {
	for file in $CLOSE; do close_file "$file"; done
	for file in $RESTORE; do
		case $file in /etc/kubernetes/manifests/*) die "$file is not restored: a static pod may need what somebody has added to it" ;; esac
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
}

# close_file FILE leaves a file with keys to root alone. It is root's first: the owner of a file may give it any mode. One that is
# gone, as the kubelet removes its former certificates, needs nothing.
close_file() {
	[ -f "$1" ] && [ ! -L "$1" ] || return 0
	say "closing $1"
	chown 0:0 "$1"
	chmod 0600 "$1"
}

# unit_of FILE prints the unit that reads the file when it starts, and only then.
unit_of() {
	case $1 in
	/etc/containerd/config.toml | /etc/systemd/system/containerd.service*) echo containerd ;;
	/var/lib/kubelet/config.yaml | /etc/systemd/system/kubelet.service*) echo kubelet ;;
	esac
}

# kept_copy FILE prints the path of what the file was when it was noted.
kept_copy() {
	sum=
	[ ! -f "$FILES" ] || while read -r noted name; do
		[ "$name" != "$1" ] || sum=$noted
	done <"$FILES"
	printf '%s  %s\n' "$sum" "$KEPT/$sum" | sha256sum -c --status - 2>/dev/null ||
		die "what $1 was is not kept on this host any more: kubeone upgrade --force makes it anew"
	printf '%s\n' "$KEPT/$sum"
}

# bring_back FILE makes a file what it was. A setting of the kernel is in force before the file says so.
bring_back() {
	say "bringing back $1"
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
