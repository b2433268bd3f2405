package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the script
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/manifest"
	"kubeone/test/lab/fleet"
)

// byHand is the script of an operator who installs without kubeone.
//
//go:embed byhand.sh
var byHand string

// installByHand runs the script on the bare lab and measures it.
func (b *bench) installByHand(ctx context.Context) (installation, error) {
	loaded, err := manifest.Load(ctx, manifest.Options{ManifestPath: b.lab.Path("kubeone.yaml")})
	if err != nil {
		return installation{}, err
	}
	want, folder := loaded.Cluster, filepath.Join(b.dir, "release")
	files, err := releaseFolder(folder, b.lab.Bundle, want)
	if err != nil {
		return installation{}, err
	}
	if err := settleDisks(append(files.paths, b.lab.Bundle)...); err != nil {
		return installation{}, err
	}
	// A file, because ssh would read from standard input too.
	path := filepath.Join(b.dir, "byhand.sh")
	if err := os.WriteFile(path, []byte(byHand), 0o600); err != nil {
		return installation{}, err
	}
	cmd := exec.CommandContext(ctx, "bash", path)
	cmd.Env = append(os.Environ(), "RELEASE="+folder, "CONTROL_PLANE_HOSTS="+joinAddresses(b.lab.ControlPlanes()),
		"WORKER_HOSTS="+joinAddresses(b.lab.Workers()),
		"SSH_USER="+b.lab.SSHUser, "SSH_KEY="+b.lab.Path("id_ed25519"), "KNOWN_HOSTS="+b.lab.Path("known_hosts"),
		"PAUSE="+files.pause, "VERSION="+want.KubernetesVersion,
		"ENDPOINT="+net.JoinHostPort(want.Endpoint.Host, strconv.Itoa(want.Endpoint.Port)),
		"POD_SUBNET="+want.Network.PodSubnet, "SERVICE_SUBNET="+want.Network.ServiceSubnet)
	b.log("installing by hand")
	i, err := runStaged(cmd)
	if err != nil {
		return i, err
	}
	return i, b.checkNodes(ctx)
}

// checkNodes checks that every host is a Ready Node.
func (b *bench) checkNodes(ctx context.Context) error {
	const list = `kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes --no-headers | grep -c ' Ready '`
	ready, err := b.lab.ControlPlanes()[0].Exec(ctx, list)
	if err != nil {
		return fmt.Errorf("count the nodes: %w", err)
	}
	if want := len(b.lab.ControlPlanes()) + len(b.lab.Workers()); ready != strconv.Itoa(want) {
		return fmt.Errorf("%s nodes are Ready, want %d", ready, want)
	}
	return nil
}

func joinAddresses(hosts []*fleet.Host) string {
	all := make([]string, 0, len(hosts))
	for _, h := range hosts {
		all = append(all, h.Address)
	}
	return strings.Join(all, " ")
}

// runStaged runs a program that prints "stage NAME HOST" when a stage begins. It measures the program and its stages.
func runStaged(cmd *exec.Cmd) (installation, error) {
	var i installation
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.StdoutPipe()
	if err != nil {
		return i, err
	}
	i.cost, err = measureCost(func() error {
		if err := cmd.Start(); err != nil {
			return err
		}
		i.Stages = readStages(out, time.Now)
		return cmd.Wait()
	})
	if err != nil {
		return i, withLastLines(err, messages.String())
	}
	return i, nil
}

// readStages sums the duration of stages by name, in the order of each name's first line. It ignores the time before
// the first stage. The last stage lasts until the end.
func readStages(r io.Reader, now func() time.Time) []stage {
	var t tally
	current, since := "", time.Time{}
	end := func() {
		if current != "" {
			t.addSeconds(current, now().Sub(since).Seconds())
		}
	}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var name, host string
		if n, _ := fmt.Sscanf(lines.Text(), "stage %s %s", &name, &host); n != 2 {
			continue
		}
		end()
		current, since = name, now()
	}
	end()
	return t.stages
}

// tally adds seconds up by name.
type tally struct{ stages []stage }

func (t *tally) addSeconds(name string, seconds float64) {
	for i := range t.stages {
		if t.stages[i].Name == name {
			t.stages[i].Seconds += seconds
			return
		}
	}
	t.stages = append(t.stages, stage{name, seconds})
}
