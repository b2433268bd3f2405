# What was on the host before kubeone and is in the way. It is kept below $ASIDE, under its path, until a reset.
#
# Variables, set by script.go:
#
#	ASIDE         directory
#	MASKED        file with the names of the units that kubeone has masked, one a line
#	CNI_FILES     list of file names in /etc/cni/net.d that belong to the network plugin
#	CNI_EXTERNAL  yes|no: the operator installs the network plugin

# keep_aside FILE... moves files below $ASIDE.
keep_aside() {
	for file in "$@"; do
		mkdir -p "$ASIDE${file%/*}"
		keep_as "$file" "$ASIDE$file"
		say "$file is now $ASIDE$file, until a reset"
	done
}

# other_cni_aside moves CNI configurations of other network plugins aside, because containerd uses the first one by
# name. If the operator installs the network plugin, it only copies them: they stay in use, and a reset deletes the
# directory.
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

# other_programs_aside disables drop-ins that make our unit start another kubelet, such as the one of kubeadm's package.
# It moves those in /etc, and masks those of packages with a link of the same name; a reset removes the links.
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

# other_runtime_aside moves aside the configuration and unit of a containerd that was installed before. Only the first
# preparation does this: afterwards these files are kubeone's.
other_runtime_aside() {
	[ ! -e "$ASIDE.runtime" ] || return 0
	for file in /etc/containerd/config.toml /etc/crictl.yaml /etc/systemd/system/containerd.service; do
		if [ -e "$file" ] || [ -h "$file" ]; then keep_aside "$file"; fi
	done
	mkdir -p "${ASIDE%/*}"
	: >"$ASIDE.runtime"
	on_disk "$ASIDE.runtime"
}

# swap_off turns swap off for now, and for later boots in /etc/fstab and by masking units.
swap_off() {
	CHANGED=no
	[ ! -f /etc/fstab ] || put /etc/fstab "$(stat -c %a /etc/fstab)" fstab_without_swap
	[ "$CHANGED" = no ] || systemctl daemon-reload # systemd generates swap units from fstab
	CHANGED=no
	swap_units | while read -r unit; do mask_unit "$unit"; done
	[ "$(wc -l </proc/swaps)" -gt 1 ] || return 0
	say "switching swap off"
	swapoff -a
}

fstab_without_swap() { sed -E 's/^([^#].*[[:space:]]swap[[:space:]].*)$/# kubeone: \1/' /etc/fstab; }

fstab_with_swap() { sed 's/^# kubeone: //' /etc/fstab; }

# swap_units prints the enabled units that turn swap on at boot: those of type swap, and services that set up their own.
swap_units() {
	{
		systemctl list-unit-files --no-legend --type=swap || true
		systemctl list-unit-files --no-legend dphys-swapfile.service zramswap.service zram-config.service || true
	} 2>/dev/null | while read -r unit state _; do
		case $state in masked* | disabled | alias) ;; *) printf '%s\n' "$unit" ;; esac
	done
}

# mask_unit UNIT stops a unit and masks it.
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

# give_back restores files from $ASIDE and unmasks units. It does not overwrite files that exist again.
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
