# Prints what helps to diagnose this host, in sections. It changes nothing, and prints no file with secrets.
#
#	$1  maximum length of a section, in bytes

PATH=/opt/kubeone/bin:$PATH
export PATH
most=$1

# section NAME COMMAND... prints a section with the output of COMMAND, even if that fails. COMMAND gets 10 s.
section() {
	printf '\n::kubeone-section:: %s\n' "$1"
	shift
	timeout 10 "$@" 2>&1 | tail -c "$most" || true
}

section machine.txt sh -c 'date -u; uptime; uname -a; cat /etc/os-release; nproc; free -m; df -h; df -i /var'
section network.txt sh -c 'ip -brief address; ip route; ss -ltn; cat /etc/resolv.conf'
section units.txt sh -c 'systemctl --no-pager --no-legend --failed list-units
	systemctl --no-pager -n 0 status kubelet containerd kubeone-step kubeone-guard "kubeone-*.timer"'
section kubelet.log journalctl --no-pager -o short-iso -n 3000 -u kubelet
section containerd.log journalctl --no-pager -o short-iso -n 3000 -u containerd
section kubeone-step.log journalctl --no-pager -o short-iso -n 500 -u kubeone-step
section kubeone-guard.log journalctl --no-pager -o short-iso -n 500 -u kubeone-guard
section kubeone-snapshot.log journalctl --no-pager -o short-iso -n 500 -u kubeone-snapshot
section step.txt sh -c 'cd /var/lib/kubeone/step && ls -l . && head -n 20 current result'
section step.log tail -c "$most" /var/lib/kubeone/step/log
section lock.txt sh -c 'cd /var/lib/kubeone/lock && ls -l . && head -n 20 owner generation'
section kubeone.txt sh -c 'head -n 50 /etc/kubeone/marker /etc/kubeone/digests; ls -l /opt/kubeone /opt/kubeone/bin'
section files.txt sh -c 'ls -lR /etc/kubernetes /var/lib/kubelet/pki /etc/cni/net.d
	ls -l /var/lib/etcd /var/lib/etcd/member'
section containers.txt sh -c 'crictl ps -a || ctr --connect-timeout 2s -n k8s.io containers list'
section pods.txt crictl pods
section images.txt sh -c 'crictl images || ctr --connect-timeout 2s -n k8s.io images list'
