# stage prepare: prepares a bare host for kubeadm. Each function changes only what differs.
#
# Variables, set by script.go except where noted:
#
#	BINARIES        table NAME VERSION SHA256 ARCHIVE(yes|no) URL
#	TOOLS           list PROGRAM=PACKAGE of what the host needs
#	RUNTIME_CONFIG  function that prints containerd's configuration; change_runtime sets another one
#	CA_BUNDLE       yes|no: the manifest has CA certificates for containerd (file_ca_bundle)
#	PROXY           yes|no: the manifest has a proxy for containerd (file_proxy)
#	SWITCH          yes|no: install_binary also changes the links; stage fetch sets no

stage_prepare() {
	mark no
	credential_files # downloads may need credentials
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
	configure_host_addons
	# shellcheck disable=SC2086 # a list
	record $HOST_DIGESTS
}

# starts_ours NAME dies if the unit NAME starts another program than ours. A drop-in left by a package, such as
# kubeadm's 10-kubeadm.conf, applies to our unit too.
starts_ours() {
	start=$(systemctl show -p ExecStart --value "$1.service")
	case $start in
	*"path=$BIN/$1 "*) ;;
	*path=*)
		start=${start#*path=}
		die "$1.service starts ${start%% *}, and not $BIN/$1, because of a drop-in among" \
			"$(systemctl show -p DropInPaths --value "$1.service"):" \
			"remove the drop-in, or the package that it belongs to, and apply again"
		;;
	esac
}

# install_packages installs the packages of missing TOOLS. package_install comes from internal/model/distro.
install_packages() {
	missing=
	for pair in $TOOLS; do
		have "${pair%%=*}" || missing="$missing ${pair#*=}"
	done
	# shellcheck disable=SC2086 # a list
	[ -z "$missing" ] || add_packages $missing
}

# add_packages NAME... installs packages of the distribution.
add_packages() {
	say "installing packages: $*"
	package_install "$@" ||
		die "cannot install $*: give this host a package source that has them, or install them on it, and apply again"
}

kernel_settings() {
	! forwards_ipv6 || check_ipv6_route
	put /etc/modules-load.d/kubeone.conf 0644 file_modules
	file_modules | while read -r module; do
		modprobe "$module" 2>/dev/null || [ -d "/sys/module/$module" ] ||
			say "warning: kernel module $module cannot be loaded"
	done
	put /etc/sysctl.d/99-zz-kubeone.conf 0644 file_sysctl
	sysctl -q -e -p /etc/sysctl.d/99-zz-kubeone.conf 2>/dev/null ||
		say "warning: the kernel did not take every setting of /etc/sysctl.d/99-zz-kubeone.conf"
	[ "$(cat /proc/sys/net/ipv4/ip_forward)" = 1 ] || die "net.ipv4.ip_forward cannot be set to 1"
	! forwards_ipv6 || [ "$(cat /proc/sys/net/ipv6/conf/all/forwarding)" = 1 ] ||
		die "net.ipv6.conf.all.forwarding cannot be set to 1, which a dual-stack cluster needs"
}

forwards_ipv6() { file_sysctl | grep -q '^net\.ipv6\.conf\.all\.forwarding = 1$'; }

# check_ipv6_route checks the default route for IPv6, before forwarding is on: then Linux drops a route that it has from
# router advertisements, unless accept_ra is 2. The kernel's flag of such a route is RTF_ADDRCONF (linux/ipv6_route.h).
check_ipv6_route() {
	device='' learned=''
	while read -r to length _ _ _ _ _ _ flags name; do
		if [ "$to/$length" = 00000000000000000000000000000000/00 ] && [ "$name" != lo ]; then
			device=$name
			[ $((0x$flags & 0x40000)) -eq 0 ] || learned=$name
		fi
	done </proc/net/ipv6_route
	[ -z "$learned" ] || [ "$(cat "/proc/sys/net/ipv6/conf/$learned/accept_ra")" != 1 ] ||
		die "this host has its IPv6 default route from router advertisements, and Linux ignores them when it forwards:" \
			"set net.ipv6.conf.$learned.accept_ra to 2 in /etc/sysctl.d and in the kernel, and apply again"
	[ -n "$device" ] || [ -z "$(file_cni)" ] ||
		die "this host has no default route for IPv6, which the network plugin needs:" \
			"add one through the interface of the default route for IPv4, and apply again"
}

# verified SHA256 URL prints the path of the file with that digest, which it downloads unless kubeone has uploaded it.
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

# download URL PATH downloads a file with curl or wget.
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

# install_binary NAME VERSION SHA256 ARCHIVE URL installs a program into a directory of its version. ARCHIVE is yes|no:
# the file is a tar.gz. Unless SWITCH is no, it then changes the links.
install_binary() {
	binary=$1 binary_version=$2 binary_sum=$3 is_archive=$4 binary_url=$5
	home=/opt/kubeone/$binary/$binary_version
	if [ "$(cat "$home/.sha256" 2>/dev/null)" != "$binary_sum" ]; then
		say "installing $binary $binary_version"
		file=$(verified "$binary_sum" "$binary_url") || exit 1
		# The caller runs this in a condition, where set -e has no effect: check each command.
		rm -rf "$home.part" && mkdir -p "$home.part" || exit 1
		if [ "$is_archive" = yes ]; then
			tar -xzf "$file" -C "$home.part" --no-same-owner || exit 1
		else
			mv "$file" "$home.part/$binary" && chmod 0755 "$home.part/$binary" || exit 1
		fi
		on_disk "$home.part" # before .sha256 says that it is complete
		printf '%s\n' "$binary_sum" >"$home.part/.sha256" || exit 1
		rm -rf "$home" && mv -T "$home.part" "$home" || exit 1
		rm -f "$file"
	fi
	[ "$SWITCH" = no ] || link_binary "$binary" "$home"
}

# link_binary NAME HOME makes the links of a program point to the version in the directory HOME.
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

# configure_runtime configures containerd and restarts it if needed. If the run is killed before the restart, the file
# DIRTY remains.
configure_runtime() {
	CHANGED=no
	credential_files
	DIRTY=$RUNTIME_DIRTY
	[ ! -e "$DIRTY" ] || CHANGED=yes
	put /etc/systemd/system/containerd.service 0644 file_containerd_unit
	put /etc/containerd/config.toml 0644 "$RUNTIME_CONFIG"
	put /etc/crictl.yaml 0644 file_crictl
	others_changed=$CHANGED DIRTY=
	registry_files # no restart: containerd reads them at each pull
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

# start_runtime restarts containerd if its configuration has changed or another version is running, and removes DIRTY.
start_runtime() {
	[ "$CHANGED" = no ] || systemctl daemon-reload
	running=$(readlink "/proc/$(systemctl show -p MainPID --value containerd.service)/exe" 2>/dev/null || true)
	if [ "$CHANGED" = yes ] || [ "$running" != "$(readlink -f "$BIN/containerd")" ]; then
		systemctl -q enable containerd.service
		systemctl restart containerd.service ||
			die "containerd does not start: $(journalctl -u containerd -n 5 --no-pager -o cat)"
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
		# While the service counts as started, the path unit would not start it for the missing file.
		[ -f "/etc/cni/net.d/$CNI_CONFIG" ] || systemctl stop kubeone-cni.service
		systemctl -q enable --now kubeone-cni.path
	fi
}
