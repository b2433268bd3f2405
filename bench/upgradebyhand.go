package main

import (
	"context"
	_ "embed" // the script
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kubeone/internal/manifest"
)

// upgradeScript is the script of an operator without a program of its own.
//
//go:embed upgrade-byhand.sh
var upgradeScript string

// upgradeByHand runs the script on a cluster that was installed by hand, and measures it.
func (b *bench) upgradeByHand(ctx context.Context) (upgraded, error) {
	loaded, err := manifest.Load(ctx, manifest.Options{ManifestPath: b.lab.Path("kubeone.yaml")})
	if err != nil {
		return upgraded{}, err
	}
	files, err := b.release(loaded.Cluster)
	if err != nil {
		return upgraded{}, err
	}
	cmd, err := b.script(ctx, upgradeScript, "VERSION="+loaded.Cluster.KubernetesVersion, "PAUSE="+files.pause)
	if err != nil {
		return upgraded{}, err
	}
	b.log("upgrading by hand")
	i, err := runStaged(cmd)
	u := upgraded{installation: i, Files: secondsOf(i.Stages, "copy", "import")}
	u.Outside = u.changing() - secondsOf(i.Stages, "kubeadm", "drain")
	return u, err
}

// script writes a script beside what it sources, and returns the command that runs it on the lab's hosts.
func (b *bench) script(ctx context.Context, text string, environment ...string) (*exec.Cmd, error) {
	// Files, not standard input, which ssh would read too.
	path := filepath.Join(b.dir, "byhand.sh")
	for name, content := range map[string]string{path: text, filepath.Join(b.dir, "byhand-ssh.sh"): byHandSSH} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, "bash", path)
	cmd.Env = append(os.Environ(),
		"RELEASE="+b.releasePath(), "CONTROL_PLANE_HOSTS="+addresses(b.lab.ControlPlanes()),
		"WORKER_HOSTS="+addresses(b.lab.Workers()),
		"SSH_USER="+b.lab.SSHUser, "SSH_KEY="+b.lab.Path("id_ed25519"), "KNOWN_HOSTS="+b.lab.Path("known_hosts"))
	cmd.Env = append(cmd.Env, environment...)
	return cmd, nil
}

// checkVersions makes sure that every node is Ready, may be scheduled on, and has the version.
func (b *bench) checkVersions(ctx context.Context, version string) error {
	const list = `export PATH=/opt/kubeone/bin:$PATH; ` +
		`kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes --no-headers`
	printed, err := b.lab.ControlPlanes()[0].Exec(ctx, list)
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	done := 0
	for _, line := range strings.Split(printed, "\n") {
		// NAME STATUS ROLES AGE VERSION
		if fields := strings.Fields(line); len(fields) == 5 && fields[1] == "Ready" && fields[4] == "v"+version {
			done++
		}
	}
	if want := len(b.lab.ControlPlanes()) + len(b.lab.Workers()); done != want {
		return fmt.Errorf("%d nodes are Ready with v%s, want %d:\n%s", done, version, want, printed)
	}
	return nil
}
