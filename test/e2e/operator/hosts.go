package operator

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"kubeone/test/lab/fleet"
)

// Machines returns the lab's hosts without the load balancer, spare ones included.
func (o *Operator) Machines() []*fleet.Host {
	var out []*fleet.Host
	for _, host := range o.Lab.Hosts {
		if host.Role != fleet.LoadBalancer {
			out = append(out, host)
		}
	}
	return out
}

// Members returns the hosts in the lab's manifest, control planes first.
func (o *Operator) Members() []*fleet.Host { return append(o.Lab.ControlPlanes(), o.Lab.Workers()...) }

// OnEach runs a shell command on hosts at the same time, as root and without SSH. It returns the outputs by hostname.
func OnEach(ctx context.Context, hosts []*fleet.Host, command string) (map[string]string, error) {
	var mu sync.Mutex
	out := map[string]string{}
	group, ctx := errgroup.WithContext(ctx)
	for _, host := range hosts {
		group.Go(func() error {
			text, err := host.Exec(ctx, command)
			mu.Lock()
			defer mu.Unlock()
			out[host.Hostname] = text
			return err
		})
	}
	return out, group.Wait()
}

// CutConnections ends every SSH session on the hosts at once, like a network that resets connections.
func CutConnections(ctx context.Context, hosts []*fleet.Host) error {
	// Sessions are "sshd: ops [priv]" and the like; the listener is "sshd: /usr/sbin/sshd -D [listener] …".
	_, err := OnEach(ctx, hosts, `pkill -KILL -f '^sshd: [^/]' || true`)
	return err
}

// ReadyAPI returns nil when the API server of a control-plane host is ready, etcd included.
func ReadyAPI(ctx context.Context, host *fleet.Host) error {
	_, err := host.Exec(ctx, "curl -fsk --max-time 2 https://127.0.0.1:6443/readyz >/dev/null && curl -fs --max-time "+
		"2 http://127.0.0.1:2381/readyz >/dev/null")
	return err
}

// Lines splits the output of a command. Empty output has no lines.
func Lines(text string) []string {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Tasks is a command that lists the running containers of a host with their processes, sorted. Its lines stay equal
// until a container restarts, although ctr's column width follows the longest process ID. It omits controller manager
// and scheduler, which exit by themselves when they cannot renew their Lease for ten seconds. It includes their
// sandboxes: a new sandbox for another manifest is visible. The command fails when containerd does not answer or lists
// nothing. Otherwise an empty list before would hide every restart, and one after would invent them.
const Tasks = `ctr="/opt/kubeone/bin/ctr -n k8s.io"
	all=$($ctr containers ls) && tasks=$($ctr tasks ls) || exit 1
	led=$(printf '%s\n' "$all" | awk '/\/kube-(controller-manager|scheduler):/ { print $1 }')
	listed=$(printf '%s\n' "$tasks" |
		awk 'NR > 1 { print $1, $2, $3 }' | grep -vF "${led:-none}") || { echo "no container runs" >&2; exit 1; }
	printf '%s\n' "$listed" | sort`

// Started returns, for each host, when its services and containers were last started. The lines stay equal until
// something restarts.
func Started(ctx context.Context, hosts []*fleet.Host) (map[string]string, error) {
	return OnEach(ctx, hosts, `set -e
		for unit in containerd kubelet; do
			echo "$unit $(systemctl show -p ActiveEnterTimestampMonotonic --value $unit)"
		done
		`+Tasks)
}

// Written describes, for each host, every file that kubeone or Kubernetes' tools write once, with its modification
// time: configuration, keys, static-pod manifests, programs. It omits files that a running cluster writes by itself.
func Written(ctx context.Context, hosts []*fleet.Host) (map[string]string, error) {
	return OnEach(ctx, hosts, `find /etc/kubernetes /etc/kubeone /etc/containerd /etc/cni /etc/systemd/system \
		/opt/kubeone /var/lib/kubelet/config.yaml /var/lib/kubelet/kubeadm-flags.env \
		-type f -printf '%p %m %s %T@\n' 2>/dev/null | sort`)
}

// Logins counts the accepted SSH logins of a host since a position that Mark returned.
func Logins(ctx context.Context, host *fleet.Host, since string) (int, error) {
	out, err := host.Exec(ctx, fmt.Sprintf("journalctl --sync; journalctl -t sshd --after-cursor=%q -o cat --no-pager "+
		"| grep -c 'session opened' || true", since))
	if err != nil {
		return 0, err
	}
	var n int
	_, err = fmt.Sscan(out, &n)
	return n, err
}

// Mark returns the current end of a host's journal.
func Mark(ctx context.Context, host *fleet.Host) (string, error) {
	out, err := host.Exec(ctx,
		"journalctl --sync; journalctl -n 1 -o cat --show-cursor --no-pager | sed -n 's/^-- cursor: //p'")
	if err == nil && out == "" {
		err = fmt.Errorf("%s: the journal has no cursor", host.Name)
	}
	return out, err
}
