package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Labels of containers and networks, to find them without the lab's folder.
const (
	labelName  = "kubeone-lab"
	labelDir   = "kubeone-lab.dir"
	labelOwner = "kubeone-lab.owner" // only on ephemeral labs
)

func (l *Lab) labelArgs() []string {
	labels := []string{"--label", labelName + "=" + l.Name, "--label", labelDir + "=" + l.Dir}
	if l.Ephemeral {
		labels = append(labels, "--label", labelOwner+"="+l.Owner)
	}
	return labels
}

// Down removes the lab's hosts with their disks, its network and its folder.
func (l *Lab) Down(ctx context.Context) error {
	return removeLab(ctx, l.Name, l.Dir)
}

// Remove removes a lab, even if its folder is missing. A missing lab is not an error.
func Remove(ctx context.Context, name string) error {
	root, err := defaultStateRoot()
	if err != nil {
		return err
	}
	return removeLab(ctx, name, filepath.Join(root, name))
}

func removeLab(ctx context.Context, name, dir string) error {
	filter := "label=" + labelName + "=" + name
	containers, err := runDocker(ctx, "ps", "--all", "--quiet", "--filter", filter)
	if err != nil {
		return fmt.Errorf("remove lab %s: %w", name, err)
	}
	var problems []error
	problems = append(problems, removeContainers(ctx, strings.Fields(containers)...))
	networks, err := runDocker(ctx, "network", "ls", "--quiet", "--filter", filter)
	problems = append(problems, err)
	for _, id := range strings.Fields(networks) {
		problems = append(problems, removeNetwork(ctx, id))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("remove lab %s: %w", name, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove lab %s: %w", name, err)
	}
	return nil
}

// removeNetwork removes a network. Docker sometimes counts a removed container's endpoint until its daemon restarts.
// Such a network, without attached containers, stays and does no harm.
func removeNetwork(ctx context.Context, id string) error {
	_, err := runDocker(ctx, "network", "rm", id)
	if err == nil || !strings.Contains(err.Error(), "has active endpoints") {
		return err
	}
	attached, inspect := runDocker(ctx, "network", "inspect", "--format", "{{range .Containers}}{{.Name}} {{end}}", id)
	if inspect == nil && strings.TrimSpace(attached) == "" {
		return nil
	}
	return err
}

// removeContainers removes containers with their volumes in any state. It waits for a removal that another process,
// perhaps a dead one, has begun.
func removeContainers(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	// A paused container cannot be killed. Ignore errors for others.
	_, _ = runDocker(ctx, append([]string{"unpause"}, names...)...)
	for {
		_, err := runDocker(ctx, append([]string{"rm", "--force", "--volumes"}, names...)...)
		if err == nil || !strings.Contains(err.Error(), "is already in progress") {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
