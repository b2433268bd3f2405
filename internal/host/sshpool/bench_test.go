package sshpool_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

// BenchmarkFirstCommand measures connecting to many hosts and running a command on each.
func BenchmarkFirstCommand(b *testing.B) {
	for _, hosts := range []int{10, 100, 1000} {
		for _, rtt := range []time.Duration{0, 20 * time.Millisecond} {
			b.Run(fmt.Sprintf("hosts=%d/rtt=%v", hosts, rtt), func(b *testing.B) {
				s := sshtest.Start(b, sshtest.Options{AllLoopback: true})
				target := host.Target{
					Port:        s.Port(),
					KeyFile:     sshtest.WriteKey(b, "").Path,
					AgentSocket: "none",
					HostKeys:    []ssh.PublicKey{s.HostKey()},
				}
				options := sshpool.Options{IgnoreSSHConfig: true, HomeDir: b.TempDir()}
				if rtt > 0 {
					options.NetDial = sshtest.Latency(rtt, nil)
				}
				for b.Loop() {
					p := sshpool.New(options)
					var wg sync.WaitGroup
					for i := range hosts {
						wg.Go(func() {
							t := target
							t.Address = net.IPv4(127, 1, byte(i>>8), byte(i)).String()
							if _, err := p.Host(t).Run(b.Context(), host.Cmd{Script: ":"}); err != nil {
								b.Error(err)
							}
						})
					}
					wg.Wait()
					_ = p.Close()
				}
			})
		}
	}
}
