package fleet

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// setCable sets the outer end of a host's network cable up or down and waits until both ends have noticed. Unlike a
// pulled cable, docker's disconnect removes the interface with everything on it, and later gives it another name.
func (h *Host) setCable(ctx context.Context, state string) error {
	fail := func(err error) error { return fmt.Errorf("cable of %s %s: %w", h.Name, state, err) }
	pid, err := runDocker(ctx, "inspect", "--format", "{{.State.Pid}}", h.Container)
	if err != nil {
		return fail(err)
	}
	// Not docker exec, because the host may be paused.
	inside := []string{"--net", "--target", pid, "ip", "-o", "link", "show", "eth0"}
	inner, err := runOutput(exec.CommandContext(ctx, "nsenter", inside...))
	if err != nil {
		return fail(err)
	}
	links, err := runOutput(exec.CommandContext(ctx, "ip", "-o", "link"))
	if err != nil {
		return fail(err)
	}
	outer, err := otherEnd(inner, links)
	if err != nil {
		return fail(err)
	}
	if _, err := runOutput(exec.CommandContext(ctx, "ip", "link", "set", "dev", outer, state)); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		inner, innerErr := runOutput(exec.CommandContext(ctx, "nsenter", inside...))
		link, outerErr := runOutput(exec.CommandContext(ctx, "ip", "-o", "link", "show", outer))
		if err := errors.Join(innerErr, outerErr); err != nil {
			return fail(err)
		}
		if connected := state == "up"; hasCarrier(inner) == connected && hasCarrier(link) == connected {
			return nil
		}
		if err := waitMoment(ctx); err != nil {
			return fail(err)
		}
	}
}

// hasCarrier reports whether a line of `ip -o link` shows an interface that is up and connected.
func hasCarrier(link string) bool {
	return strings.Contains(link, "LOWER_UP") && strings.Contains(link, " state UP ")
}

var (
	peerIndex = regexp.MustCompile(`^\d+: [^@ ]+@if(\d+): `)
	linkName  = regexp.MustCompile(`^(\d+): ([^@: ]+)`)
)

// otherEnd returns the peer of an interface among the links that `ip -o link` lists.
func otherEnd(inner, links string) (string, error) {
	peer := peerIndex.FindStringSubmatch(inner)
	if peer == nil {
		return "", fmt.Errorf("no peer in %q", inner)
	}
	for _, line := range strings.Split(links, "\n") {
		if link := linkName.FindStringSubmatch(line); link != nil && link[1] == peer[1] {
			return link[2], nil
		}
	}
	return "", fmt.Errorf("no link has the number %s", peer[1])
}
