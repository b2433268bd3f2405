package fleet

import (
	"context"
	"fmt"
	"strings"
)

// haproxyConfig balances TCP 6443 over the control planes' API servers. It checks /readyz twice a second. A server that
// is down or hangs (a paused host still accepts connections) is out after about a second. New connections to it before
// that go to another server.
func haproxyConfig(controlPlanes []*Host) string {
	var text strings.Builder
	text.WriteString(`global
    maxconn 4000
    log stdout format raw daemon notice
defaults
    mode tcp
    log global
    timeout connect 500ms
    timeout check 1s
    timeout client 1h
    timeout server 1h
    retries 4
    option redispatch 1
frontend apiserver
    bind :6443
    default_backend control-planes
backend control-planes
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
    default-server check check-ssl verify none inter 500ms downinter 500ms fall 2 rise 1
    default-server on-marked-down shutdown-sessions
`)
	for _, host := range controlPlanes {
		fmt.Fprintf(&text, "    server %s %s:6443\n", host.Hostname, host.Address)
	}
	return text.String()
}

// configureLoadBalancer writes haproxy's configuration for the lab's current control planes and reloads it.
func (l *Lab) configureLoadBalancer(ctx context.Context) error {
	balancer := l.byRole(LoadBalancer)
	if len(balancer) == 0 {
		return nil
	}
	host := balancer[0]
	if err := host.WriteFile(ctx, "/etc/haproxy/haproxy.cfg", []byte(haproxyConfig(l.ControlPlanes()))); err != nil {
		return err
	}
	_, err := host.Exec(ctx, "haproxy -c -q -f /etc/haproxy/haproxy.cfg && systemctl enable -q haproxy && systemctl "+
		"reload-or-restart haproxy")
	return err
}
