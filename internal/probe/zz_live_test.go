package probe

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kubeone/internal/host"
)

func TestLive(t *testing.T) {
	dir := os.Getenv("LIVE")
	raw, _ := os.ReadFile(dir + "/lab.json")
	_ = raw
	_ = base64.StdEncoding
	var _ ssh.PublicKey
	pool := host.NewPool(host.Options{KnownHostsFiles: []string{dir + "/known_hosts"}, SSHConfig: "none"})
	defer pool.Close()
	var targets []Target
	for _, ip := range []string{os.Getenv("CP"), os.Getenv("W")} {
		h := pool.Host(host.Target{Address: ip, KeyFile: dir + "/id_ed25519", AgentSocket: "none"})
		targets = append(targets, Target{ID: ip, Host: h, ControlPlane: ip == os.Getenv("CP")})
	}
	for range 3 {
		start := time.Now()
		r, err := Run(context.Background(), Request{Targets: targets})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(time.Since(start), r.Requests, pool.Stats())
		if os.Getenv("V") != "" {
			for id, h := range r.World.Hosts {
				h.Images, h.Certificates = nil, h.Certificates[:min(2, len(h.Certificates))]
				r.World.Hosts[id] = h
			}
			r.World.API.Pods = r.World.API.Pods[:min(2, len(r.World.API.Pods))]
			out, _ := json.MarshalIndent(r, "", " ")
			t.Log(string(out))
			os.Setenv("V", "")
		}
	}
}
