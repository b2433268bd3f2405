# The firewalls ufw and firewalld. Rules of nftables and iptables outside these firewalls stay as they are.
#
# kubeone marks what it adds: ufw's rules have the comment "kubeone", and firewalld's policies are named after it.
# $FIREWALLS/NAME has the rules that NAME got, so that the probe can compare them. The file $FIREWALLS/NAME.off exists
# while kubeone has NAME switched off.
#
# Variables, set by script.go:
#
#	FIREWALL_MODE  manage|disable|ignore
#	FIREWALLS      directory

configure_firewalls() {
	for firewall in ufw firewalld; do
		case $FIREWALL_MODE in
		manage) open_firewall "$firewall" ;;
		disable) switch_firewall_off "$firewall" ;;
		esac
	done
}

# open_firewall NAME adds the cluster's rules to a firewall that is active, or that kubeone has switched off.
open_firewall() {
	"${1}_installed" || rm -f "$FIREWALLS/$1.off"
	[ -e "$FIREWALLS/$1.off" ] || "${1}_filters" || return 0
	say "opening ports in $1"
	"${1}_open"
	if [ -e "$FIREWALLS/$1.off" ]; then
		"${1}_on"
		rm -f "$FIREWALLS/$1.off"
	fi
	put "$FIREWALLS/$1" 0600 "${1}_rules"
}

# switch_firewall_off NAME records the change before it makes it: a reset switches the firewall on again.
switch_firewall_off() {
	"${1}_filters" || return 0
	say "switching $1 off"
	mkdir -p "$FIREWALLS"
	: >"$FIREWALLS/$1.off"
	on_disk "$FIREWALLS"
	"${1}_off"
}

# restore_firewalls removes kubeone's rules, and switches on the firewalls that kubeone has switched off.
restore_firewalls() {
	for firewall in ufw firewalld; do
		"${firewall}_close" || say "warning: rules of kubeone are left in $firewall"
		[ -e "$FIREWALLS/$firewall.off" ] || continue
		say "switching $firewall on"
		"${firewall}_on" || say "warning: $firewall cannot be switched on"
	done
}

ufw_installed() { have ufw; }
ufw_filters() { ufw_installed && ufw status 2>/dev/null | grep -q '^Status: active'; }
ufw_on() { ufw --force enable; }
ufw_off() { ufw disable; }

# ufw_rules prints kubeone's rules as ufw stores them, with the comment in hexadecimal.
ufw_rules() { grep -hs ' comment=6b7562656f6e65$' /etc/ufw/user.rules /etc/ufw/user6.rules || true; }

# ufw_ours prints kubeone's rules as arguments of ufw.
ufw_ours() { ufw show added | sed -n "s/^ufw \(.*\) comment 'kubeone'\$/\1/p"; }

# ufw_open adds missing rules, and then removes obsolete ones. ufw has one rule for a port: an operator's rule for it
# stays.
ufw_open() {
	others=$(ufw show added | grep -v " comment 'kubeone'\$" |
		sed -n "s/ comment '.*'\$//; s/ log\(-all\)\{0,1\} / /; s/^ufw //p")
	ours=$(ufw_ours)
	file_ufw_rules | while read -r rule; do
		! has_line "$rule" "$ours" || continue
		for action in allow deny reject limit; do
			! has_line "${rule%%allow*}$action${rule#*allow}" "$others" || break
			action=
		done
		if [ -n "$action" ]; then
			say "ufw has a rule of its own in place of \"$rule\", which stays: ${rule%%allow*}$action${rule#*allow}"
			continue
		fi
		# shellcheck disable=SC2086 # words
		ufw $rule comment kubeone >/dev/null || die "ufw does not take the rule \"$rule\""
	done || exit 1
	wanted=$(file_ufw_rules)
	printf '%s\n' "$ours" | while read -r rule; do
		[ -z "$rule" ] || has_line "$rule" "$wanted" || ufw_delete "$rule" || exit 1
	done || die "ufw does not delete a rule"
}

# has_line LINE TEXT succeeds if LINE is a line of TEXT.
has_line() { printf '%s\n' "$2" | grep -qxF -e "$1"; }

# ufw_delete RULE deletes a rule. RULE is a list of ufw's arguments.
ufw_delete() {
	# shellcheck disable=SC2086 # words
	case $1 in
	"route "*) ufw route delete ${1#route } >/dev/null ;;
	*) ufw delete $1 >/dev/null ;;
	esac
}

ufw_close() {
	ufw_installed || return 0
	ufw_ours | while read -r rule; do
		ufw_delete "$rule" || exit 1
	done
}

firewalld_installed() { have firewall-cmd; }
firewalld_filters() { firewalld_installed && systemctl is-active --quiet firewalld 2>/dev/null; }
firewalld_on() { systemctl enable --now firewalld; }
firewalld_off() { systemctl disable --now firewalld; }

# firewalld_rules prints kubeone's policies.
firewalld_rules() {
	cat /etc/firewalld/policies/kubeone-host.xml /etc/firewalld/policies/kubeone-forward.xml 2>/dev/null || true
}

# firewalld_open writes kubeone's policies. firewalld reads them only on a reload, which drops rules that are in no
# file.
firewalld_open() {
	firewall-cmd --help 2>/dev/null | grep -q -e --policy ||
		die "this host's firewalld is older than 0.9 and has no policies:" \
			"update it, or set firewall to disable or ignore in the manifest"
	put /etc/firewalld/policies/kubeone-host.xml 0644 file_firewalld_host
	put /etc/firewalld/policies/kubeone-forward.xml 0644 file_firewalld_forward
	firewalld_filters || return 0
	if ! firewalld_rules | cmp -s - "$FIREWALLS/firewalld"; then
		firewall-cmd --reload >/dev/null ||
			die "firewalld does not take its rules: $(journalctl -u firewalld -n 5 --no-pager -o cat)"
	fi
}

firewalld_close() {
	[ -n "$(firewalld_rules)" ] || return 0
	rm -f /etc/firewalld/policies/kubeone-host.xml /etc/firewalld/policies/kubeone-forward.xml
	! firewalld_filters || firewall-cmd --reload >/dev/null
}
