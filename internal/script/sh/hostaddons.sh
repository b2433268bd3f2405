# The addons that are timers on hosts: etcd-defrag and unattended-upgrades.
#
# Variables, set by script.go:
#
#	HOST_ADDONS  list of those that this host is to have
#	UPGRADER     COMMAND=PACKAGE of what installs security updates on its own; "" if the system has none

# configure_host_addons installs these timers, and removes those that are not desired.
configure_host_addons() {
	for addon in etcd-defrag unattended-upgrades; do configure_host_addon "$addon"; done
}

configure_host_addon() {
	case " $HOST_ADDONS " in
	*" $1 "*) ;;
	*)
		remove_host_addon "$1"
		return
		;;
	esac
	case $1 in
	etcd-defrag) install_defrag ;;
	unattended-upgrades) install_upgrades ;;
	esac
	run_timer "$1"
}

install_defrag() {
	CHANGED=no
	put /etc/kubeone/addons/etcd-defrag.sh 0700 file_etcd_defrag_script
	put /etc/systemd/system/kubeone-etcd-defrag.service 0644 file_etcd_defrag_service
	put /etc/systemd/system/kubeone-etcd-defrag.timer 0644 file_etcd_defrag_timer
}

install_upgrades() {
	install_upgrader
	CHANGED=no
	case $UPGRADER in
	dnf-automatic=*) put /etc/kubeone/addons/dnf-automatic.conf 0644 file_unattended_upgrades_dnf ;;
	*) put /etc/apt/apt.conf.d/99kubeone-unattended-upgrades 0644 file_unattended_upgrades_apt ;;
	esac
	put /etc/systemd/system/kubeone-unattended-upgrades.service 0644 file_unattended_upgrades_service
	put /etc/systemd/system/kubeone-unattended-upgrades.timer 0644 file_unattended_upgrades_timer
}

# install_upgrader installs the program that installs security updates, if it is missing. apt's own timers would start
# it, too, even without the addon, if the package were not told otherwise.
install_upgrader() {
	[ -n "$UPGRADER" ] || die "kubeone knows no program for unattended upgrades here: remove the addon from the manifest"
	! have "${UPGRADER%%=*}" || return 0
	! have debconf-set-selections ||
		printf 'unattended-upgrades unattended-upgrades/enable_auto_updates boolean false\n' | debconf-set-selections
	add_packages "${UPGRADER#*=}"
}

# remove_host_addon NAME removes an addon from this host, and its records last. The program of an upgrade stays.
remove_host_addon() {
	[ -e "/etc/systemd/system/kubeone-$1.timer" ] || grep -qs "^$1 " "$DIGESTS" || return 0
	# shellcheck disable=SC2046 # a list
	forget_files $(files_of "$1")
	# shellcheck disable=SC2046 # a list
	remove_timer "$1" $(files_of "$1")
	rmdir /etc/kubeone/addons 2>/dev/null || true
	[ -f "$DIGESTS" ] || return 0
	NEW_DIGESTS='' REPLACED=$1
	put "$DIGESTS" 0644 digests_text
}
