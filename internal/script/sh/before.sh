# What was on the host before us and is in the way. It is kept below ASIDE, by its path, until a reset puts it back.

# keep_aside FILE... moves files there.
keep_aside() {
	for file in "$@"; do
		mkdir -p "$ASIDE${file%/*}"
		keep_as "$file" "$ASIDE$file"
		say "$file is now $ASIDE$file, until a reset"
	done
}

# other_cni_aside keeps CNI configuration that is not the network plugin's: the container runtime takes the first by name. With a
# network plugin of somebody else's it stays, and is copied: a reset empties its folder.
other_cni_aside() {
	for file in /etc/cni/net.d/*.conf /etc/cni/net.d/*.conflist /etc/cni/net.d/*.json; do
		[ -e "$file" ] || [ -h "$file" ] || continue
		case " $CNI_FILES " in *" ${file##*/} "*) continue ;; esac
		if [ "$CNI_EXTERNAL" = no ]; then
			keep_aside "$file"
		elif [ ! -e "$ASIDE$file" ]; then
			mkdir -p "$ASIDE${file%/*}"
			cp -a "$file" "$ASIDE$file"
		fi
	done
}

# other_programs_aside keeps drop-ins from starting another kubelet in our unit, as the one of kubeadm's package would. One of /etc is
# moved; one of a package is masked by a link of its name, which a reset removes with its folder.
other_programs_aside() {
	for file in /etc/systemd/system/kubelet.service.d/*.conf /usr/lib/systemd/system/kubelet.service.d/*.conf \
		/lib/systemd/system/kubelet.service.d/*.conf; do
		grep -qs '^ExecStart=' "$file" || continue
		case $file in
		*/lib/systemd/*)
			mkdir -p /etc/systemd/system/kubelet.service.d
			link /dev/null "/etc/systemd/system/kubelet.service.d/${file##*/}"
			;;
		*) keep_aside "$file" ;;
		esac
	done
}

# other_runtime_aside keeps the configuration and the unit of a containerd that was here before, at the first preparation only:
# afterwards those files are ours.
other_runtime_aside() {
	[ ! -e "$ASIDE.runtime" ] || return 0
	for file in /etc/containerd/config.toml /etc/crictl.yaml /etc/systemd/system/containerd.service; do
		if [ -e "$file" ] || [ -h "$file" ]; then keep_aside "$file"; fi
	done
	mkdir -p "${ASIDE%/*}"
	: >"$ASIDE.runtime"
	on_disk "$ASIDE.runtime"
}

# swap_off switches swap off, and keeps it off: in /etc/fstab, and by masking what else switches it on at boot.
swap_off() {
	CHANGED=no
	[ ! -f /etc/fstab ] || put /etc/fstab "$(stat -c %a /etc/fstab)" fstab_without_swap
	[ "$CHANGED" = no ] || systemctl daemon-reload # swap units are made of it
	CHANGED=no
	swap_units | while read -r unit; do mask_unit "$unit"; done
	[ "$(wc -l </proc/swaps)" -gt 1 ] || return 0
	say "switching swap off"
	swapoff -a
}

fstab_without_swap() { sed -E 's/^([^#].*[[:space:]]swap[[:space:]].*)$/# kubeone: \1/' /etc/fstab; }

fstab_with_swap() { sed 's/^# kubeone: //' /etc/fstab; }

# swap_units prints the units that switch swap on at boot: those of type swap, also of zram-generator, and services that make their own.
swap_units() {
	{
		systemctl list-unit-files --no-legend --type=swap || true
		systemctl list-unit-files --no-legend dphys-swapfile.service zramswap.service zram-config.service || true
	} 2>/dev/null | while read -r unit state _; do
		case $state in masked* | disabled | alias) ;; *) printf '%s\n' "$unit" ;; esac
	done
}

# mask_unit UNIT ends a unit, and keeps it from being started.
mask_unit() {
	file=/etc/systemd/system/$1
	[ "$(readlink "$file")" != /dev/null ] || return 0
	say "masking $1, until a reset"
	systemctl stop "$1" 2>/dev/null || true
	grep -qsxFe "$1" "$MASKED" || printf '%s\n' "$1" >>"$MASKED"
	if [ -e "$file" ] || [ -h "$file" ]; then keep_aside "$file"; fi
	ln -s /dev/null "$file"
	systemctl daemon-reload
}

# give_back makes the host have again what was kept, and its units as they were. What has come since stays.
give_back() {
	[ ! -f "$MASKED" ] || while read -r unit; do
		[ "$(readlink "/etc/systemd/system/$unit")" != /dev/null ] || rm -f "/etc/systemd/system/$unit"
	done <"$MASKED"
	[ -d "$ASIDE" ] || return 0
	find "$ASIDE" ! -type d | while read -r kept; do
		file=${kept#"$ASIDE"}
		if [ -e "$file" ] || [ -h "$file" ]; then continue; fi
		mkdir -p "${file%/*}"
		keep_as "$kept" "$file"
		say "$file is there again"
	done
}
