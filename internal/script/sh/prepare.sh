# stage prepare: from a bare host to one on which kubeadm can work. Every part leaves alone what is already right.

stage_prepare() {
	mark no
	credential_files # downloads may need them
	install_packages
	kernel_settings
	swap_off
	configure_firewalls
	install_binaries
	other_cni_aside
	other_runtime_aside
	configure_runtime
	configure_kubelet
	starts_ours containerd
	starts_ours kubelet
	configure_snapshots
	# shellcheck disable=SC2086 # a list
	record $HOST_DIGESTS
}

# starts_ours NAME ends the stage if the unit of that name starts another program than ours: a drop-in that is left of a
# package, such as kubeadm's 10-kubeadm.conf, applies to our unit too, wherever it is.
starts_ours() {
	start=$(systemctl show -p ExecStart --value "$1.service")
	case $start in
	*"path=$BIN/$1 "*) ;;
	*path=*)
		start=${start#*path=}
		die "$1.service starts ${start%% *}, and not $BIN/$1, because of a drop-in among $(systemctl show -p DropInPaths --value \
			"$1.service"): remove the drop-in, or the package that it belongs to, and apply again"
		;;
	esac
}

# install_packages installs the packages of what is missing of TOOLS. package_install is of the host's operating system.
install_packages() {
	missing=
	for pair in $TOOLS; do
		have "${pair%%=*}" || missing="$missing ${pair#*=}"
	done
	[ -n "$missing" ] || return 0
	say "installing packages:$missing"
	# shellcheck disable=SC2086 # a list
	package_install $missing ||
		die "cannot install$missing: give this host a package source that has them, or install them on it, and apply again"
}

kernel_settings() {
	put /etc/modules-load.d/kubeone.conf 0644 file_modules
	file_modules | while read -r module; do
		modprobe "$module" 2>/dev/null || [ -d "/sys/module/$module" ] || say "warning: kernel module $module cannot be loaded"
	done
	put /etc/sysctl.d/99-zz-kubeone.conf 0644 file_sysctl
	sysctl -q -e -p /etc/sysctl.d/99-zz-kubeone.conf 2>/dev/null || say "warning: the kernel did not take every setting of /etc/sysctl.d/99-zz-kubeone.conf"
	[ "$(cat /proc/sys/net/ipv4/ip_forward)" = 1 ] || die "net.ipv4.ip_forward cannot be set to 1"
}

# verified SHA256 URL prints the path of the file with that digest: uploaded before, or downloaded now.
verified() {
	blob=$ARTIFACTS/sha256/$1
	if [ ! -f "$blob" ]; then
		[ "$PUSHED" = no ] || die "$blob was not uploaded"
		mkdir -p "$ARTIFACTS/sha256"
		download "$2" "$blob.part" || die "cannot download $2"
		mv -f "$blob.part" "$blob"
	fi
	if ! printf '%s  %s\n' "$1" "$blob" | sha256sum -c --status -; then
		rm -f "$blob"
		die "$2 is not what the plan says: its sha256 is not $1"
	fi
	printf '%s\n' "$blob"
}

# download URL PATH
download() {
	if have curl; then
		with_proxy curl -fsSL --retry 3 --connect-timeout 10 --max-time 900 -o "$2" "$1"
	elif have wget; then
		with_proxy wget -q -T 60 -t 3 -O "$2" "$1"
	else
		die "neither curl nor wget is there to download with; install one of them, or use a bundle"
	fi
}

install_binaries() {
	mkdir -p "$BIN" /opt/cni/bin
	printf '%s\n' "$BINARIES" | while read -r name version sum archive url; do
		[ -n "$name" ] || continue
		install_binary "$name" "$version" "$sum" "$archive" "$url" || exit 1
	done || exit 1
	if [ -w /usr/local/bin ]; then
		for name in kubectl kubeadm crictl ctr; do
			[ ! -e "$BIN/$name" ] || [ -e "/usr/local/bin/$name" ] || link "$BIN/$name" "/usr/local/bin/$name"
		done
	fi
}

# install_binary NAME VERSION SHA256 ARCHIVE URL unpacks into a directory of that version and, unless SWITCH is no, switches
# the links over.
install_binary() {
	home=/opt/kubeone/$1/$2
	if [ "$(cat "$home/.sha256" 2>/dev/null)" != "$3" ]; then
		say "installing $1 $2"
		file=$(verified "$3" "$5") || exit 1
		# Every command says whether it failed: where this runs, the shell itself would go on.
		rm -rf "$home.part" && mkdir -p "$home.part" || exit 1
		if [ "$4" = yes ]; then
			tar -xzf "$file" -C "$home.part" --no-same-owner || exit 1
		else
			mv "$file" "$home.part/$1" && chmod 0755 "$home.part/$1" || exit 1
		fi
		on_disk "$home.part" # before what says that it is whole
		printf '%s\n' "$3" >"$home.part/.sha256" || exit 1
		rm -rf "$home" && mv -T "$home.part" "$home" || exit 1
		rm -f "$file"
	fi
	[ "$SWITCH" = no ] || link_binary "$1" "$home"
}

# link_binary NAME HOME points the links of a program at the version in HOME.
link_binary() {
	case $1 in
	containerd) for p in containerd containerd-shim-runc-v2 ctr; do link "$2/bin/$p" "$BIN/$p"; done ;;
	cni-plugins) for p in "$2"/*; do [ ! -x "$p" ] || [ -d "$p" ] || link "$p" "/opt/cni/bin/${p##*/}"; done ;;
	*)
		case " $PLUGIN_BINARIES " in
		*" $1 "*) link_plugin "$1" "$2" ;;
		*) link "$2/$1" "$BIN/$1" ;;
		esac
		;;
	esac
}

# configure_runtime restarts containerd where its configuration is new. Who is killed in between leaves DIRTY behind, which
# says so.
configure_runtime() {
	CHANGED=no
	credential_files
	DIRTY=$RUNTIME_DIRTY
	[ ! -e "$DIRTY" ] || CHANGED=yes
	put /etc/systemd/system/containerd.service 0644 file_containerd_unit
	put /etc/containerd/config.toml 0644 "$RUNTIME_CONFIG"
	put /etc/crictl.yaml 0644 file_crictl
	others_changed=$CHANGED DIRTY=
	registry_files # which it reads at each pull
	CHANGED=$others_changed DIRTY=$RUNTIME_DIRTY
	if [ "$CA_BUNDLE" = yes ]; then
		put /etc/kubeone/ca/bundle.pem 0644 file_ca_bundle
	elif [ -f /etc/kubeone/ca/bundle.pem ]; then
		changed
		rm -f /etc/kubeone/ca/bundle.pem
	fi
	if [ "$PROXY" = yes ]; then
		put /etc/systemd/system/containerd.service.d/kubeone-proxy.conf 0644 file_proxy
	elif [ -f /etc/systemd/system/containerd.service.d/kubeone-proxy.conf ]; then
		changed
		rm -f /etc/systemd/system/containerd.service.d/kubeone-proxy.conf
	fi
	start_runtime
}

# start_runtime starts containerd again if what it reads has changed, or if it runs in another version, and takes DIRTY away.
start_runtime() {
	[ "$CHANGED" = no ] || systemctl daemon-reload
	running=$(readlink "/proc/$(systemctl show -p MainPID --value containerd.service)/exe" 2>/dev/null || true)
	if [ "$CHANGED" = yes ] || [ "$running" != "$(readlink -f "$BIN/containerd")" ]; then
		systemctl -q enable containerd.service
		systemctl restart containerd.service || die "containerd does not start: $(journalctl -u containerd -n 5 --no-pager -o cat)"
	fi
	rm -f "$DIRTY"
	DIRTY=
}

configure_kubelet() {
	CHANGED=no
	put /etc/systemd/system/kubelet.service "$FILE_MODE" file_kubelet_unit
	other_programs_aside
	put /etc/kubeone/patches/kubeletconfiguration+json.yaml 0644 file_kubelet_patch
	if [ -n "$CNI_CONFIG" ]; then
		put "/etc/kubeone/$CNI_CONFIG" "$FILE_MODE" file_cni
		put /etc/systemd/system/kubeone-cni.path 0644 file_cni_path
		put /etc/systemd/system/kubeone-cni.service 0644 file_cni_service
	fi
	if [ "$CHANGED" = yes ] || [ "$(systemctl show -p NeedDaemonReload --value kubelet.service)" = yes ]; then
		systemctl daemon-reload
	fi
	systemctl -q enable kubelet.service
	if [ -n "$CNI_CONFIG" ]; then
		# A service that counts as started would not be started again for the file that is missing.
		[ -f "/etc/cni/net.d/$CNI_CONFIG" ] || systemctl stop kubeone-cni.service
		systemctl -q enable --now kubeone-cni.path
	fi
}
