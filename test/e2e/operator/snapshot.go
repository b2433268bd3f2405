package operator

import (
	"context"

	"kubeone/test/lab/fleet"
)

// look prints everything on a host where an installation might leave traces, in a fixed order. It omits times, sizes of
// logs and the own state of systemd, apt and SSH.
const look = `
files() {
	find /etc /opt /var/lib /var/log /usr/local /run/containerd /run/flannel /run/netns /run/kubeone -xdev \
		\( -path /var/lib/systemd -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/docker \
			-o -path /var/log/journal -o -path /var/lib/sudo -o -path /var/lib/private \) -prune \
		-o -type f -printf 'file %p %m %s\n' -o -type l -printf 'link %p %l\n' \
			-o -type d -printf 'dir %p %m\n' 2>/dev/null |
		grep -v -e '^file /var/log/' -e ' /etc/resolv.conf' -e ' /etc/mtab' -e ' /etc/ld.so.cache' | sort
}
units() {
	systemctl list-unit-files --no-legend --no-pager | awk '{print "unit", $1, $2}' | sort
	systemctl list-units --all --no-legend --no-pager --plain --type=service,path,timer,socket |
		awk '/kube|containerd|etcd|flannel|cni/ {print "loaded", $1, $2, $3}' | sort
	systemctl --failed --no-legend --no-pager --plain | awk '{print "failed", $1}' | sort
}
network() {
	ip -o link | sed 's/^[0-9]*: \([^:@]*\).*/interface \1/' | sort
	ip route | sed 's/^/route /' | sort
	# The tables of iptables are looked at with its own tools: empty ones mean nothing.
	nft list tables 2>/dev/null | grep -v -x -E 'table ip6? (filter|nat|mangle|raw|security)' |
		while read -r table; do nft list $table; done |
		sed -e 's/packets [0-9]* bytes [0-9]*//' -e 's/^/nft /'
	for tool in iptables ip6tables; do
		$tool-save 2>/dev/null | grep -e '^-A' -e '^:.* - ' -e '^:.* DROP ' | sed -e 's/\[[0-9:]*\]//' -e "s/^/$tool /"
	done
	ss -ltnH | awk '{print "listens", $4}' | sort -u
}
mounts() { awk '{print "mount", $2, $3}' /proc/mounts | sort; }
processes() {
	running=$(for exe in /proc/[0-9]*/exe; do readlink "$exe"; done 2>/dev/null)
	echo "$running" | sort -u | grep -v -e '^$' -e /sshd -e /bash -e /dash -e /sudo -e bin/readlink -e systemd -e dbus |
		sed 's/^/runs /'
}
files; units; network; mounts; processes
`

// Snapshot describes each host: its files, units, interfaces, routes, firewall, mounts, ports and programs.
func Snapshot(ctx context.Context, hosts []*fleet.Host) (map[string][]string, error) {
	texts, err := OnEach(ctx, hosts, look)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for name, text := range texts {
		out[name] = Lines(text)
	}
	return out, nil
}
