//go:build e2e && long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubeone/internal/apply"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/fleet"
)

// hookLog is the file in which hooks record their runs, beside the manifest and on hosts.
const hookLog = "hooks.log"

// TestHooks runs hooks around all activities in a cluster of three hosts. Hooks fail, hang and are killed.
func TestHooks(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "hooks", ControlPlanes: 1, Workers: 2, SSHUser: "ops"})
	s.writeBeside("hook.sh", `#!/bin/sh
# Notes that it was run; with the file "fail" it fails, with the file "hang" it does not end, after terminal escapes.
echo "$KUBEONE_MOMENT $KUBEONE_NODE" >>hooks.log
printf '\033]0;title\007\033[31mthe hook of %s\n' "$KUBEONE_NODE"
[ ! -e hang ] || sleep 600
[ ! -e fail ]
`)
	s.must(os.Chmod(filepath.Join(filepath.Dir(s.Manifest), "hook.sh"), 0o700))
	s.runParts(
		part{"a new cluster", hooksOfInstall},
		part{"settings change, and a hook fails once", hooksOfReconfigure},
		part{"a hook stops an upgrade before its drain", hooksBeforeDrain},
		part{"a hook fails after an upgrade, and the program is killed in the next one", hooksAfterUpgrade},
		part{"a worker leaves, and joins again", hooksOfReset},
	)
}

// newHook returns a hook for the manifest.
func newHook(name, side, activity string, onHost bool) map[string]any {
	h := map[string]any{"name": name, side: activity, "command": []any{"./hook.sh"}, "timeout": "5s"}
	if onHost {
		h["runOn"] = "host"
		h["command"] = []any{"sh", "-c", `echo "$KUBEONE_MOMENT $KUBEONE_NODE" >>/var/log/` + hookLog +
			` && [ ! -e /run/fail-hooks ]`}
	}
	return h
}

// hookedWith writes the manifest with these hooks and maxPods.
func (s *scenario) hookedWith(maxPods int, hooks ...map[string]any) {
	s.Helper()
	s.must(s.WriteManifest(editFields(func(all map[string]any) {
		list := make([]any, 0, len(hooks))
		for _, h := range hooks {
			list = append(list, h)
		}
		all["hooks"], all["kubeletConfig"] = list, map[string]any{"maxPods": maxPods}
	})))
}

// ranHooks returns the lines that hooks have written on the operator's machine and on hosts since the last call.
func (s *scenario) ranHooks() (here []string, hosts map[string][]string) {
	s.Helper()
	path := filepath.Join(filepath.Dir(s.Manifest), hookLog)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	s.must(os.WriteFile(path, nil, 0o600))
	hosts = map[string][]string{}
	for _, h := range s.Members() {
		out, err := h.Exec(s.Context(), "cat /var/log/"+hookLog+" 2>/dev/null; rm -f /var/log/"+hookLog)
		s.must(err)
		if out != "" {
			hosts[h.Hostname] = strings.Split(strings.TrimSpace(out), "\n")
		}
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		return line == ""
	}), hosts
}

// setFile creates or removes a file beside the manifest.
func (s *scenario) setFile(name string, there bool) {
	s.Helper()
	if there {
		s.writeBeside(name, "")
		return
	}
	s.must(os.Remove(filepath.Join(filepath.Dir(s.Manifest), name)))
}

func hooksOfInstall(s *scenario) {
	s.hookedWith(90, newHook("begins", "before", "apply", false), newHook("ends", "after", "apply", false),
		newHook("comes", "before", "install", true), newHook("is-there", "after", "install", false))
	s.runCommand(2, []string{"plan", "-v"}, "hooks before apply", "begins: ./hook.sh (5 s at most)")
	installPlain(s)
	here, hosts := s.ranHooks()
	s.checkEqual("the first and the last hook", "before-apply after-apply",
		strings.TrimSpace(here[0])+" "+here[len(here)-1])
	middle := slices.Sorted(slices.Values(here[1 : len(here)-1]))
	s.checkEqual("hooks after the installation", []string{
		"after-install cp-1", "after-install worker-1", "after-install worker-2",
	}, middle)
	s.checkEqual("hooks on hosts", map[string][]string{
		"cp-1": {"before-install cp-1"}, "worker-1": {"before-install worker-1"},
		"worker-2": {"before-install worker-2"},
	}, hosts)
	s.nothingToDo()
	here, _ = s.ranHooks()
	s.checkEqual("hooks of nothing", 0, len(here))
}

// hooksOfReconfigure: the hook after the first worker fails. The run stops before the next host, and the next apply
// runs the pending hook.
func hooksOfReconfigure(s *scenario) {
	s.hookedWith(80, newHook("told", "before", "reconfigure", false),
		newHook("looked-at", "after", "reconfigure", true))
	s.breakHost(s.Lab.Host("worker-1"), "touch /run/fail-hooks")
	s.runCommand(16, []string{"apply", "-y"}, "hook looked-at failed: sh ended with status 1")
	here, hosts := s.ranHooks()
	s.checkEqual("hooks here", []string{"before-reconfigure cp-1", "before-reconfigure worker-1"}, here)
	s.checkEqual("hooks on hosts", map[string][]string{
		"cp-1": {"after-reconfigure cp-1"}, "worker-1": {"after-reconfigure worker-1"},
	}, hosts)
	s.breakHost(s.Lab.Host("worker-1"), "rm /run/fail-hooks")
	s.runCommand(2, []string{"plan"}, "hooks after reconfigure", "an earlier run ended before they succeeded")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	here, hosts = s.ranHooks()
	s.checkEqual("hooks here", []string{"before-reconfigure worker-2"}, here)
	s.checkEqual("hooks on hosts", map[string][]string{
		"worker-1": {"after-reconfigure worker-1"}, "worker-2": {"after-reconfigure worker-2"},
	}, hosts)
	s.nothingToDo()
}

// hooksBeforeDrain: a hanging hook is killed, and no node is drained.
func hooksBeforeDrain(s *scenario) {
	s.hookedWith(80, newHook("out", "before", "drain", false))
	s.runCommand(0, []string{"apply", "-y"})
	before := s.readStarted(s.Members())
	s.setFile("hang", true)
	r := s.runCommand(16, []string{"apply", "-y", "-v", "--force-upgrade", "--host", "worker-1"},
		"hook out was killed: it has not ended within 5s", "the hook of worker-1")
	if strings.ContainsAny(r.Text(), "\x1b\x07") {
		s.Errorf("what the hook printed reached the terminal as it was: %q", r.Text())
	}
	s.setFile("hang", false)
	s.checkEqual("worker-1 is closed", false, s.isCordoned("worker-1"))
	s.checkEqual("what runs on the hosts since when", before, s.readStarted(s.Members()))
	if out := s.runHere("pgrep -f 'sleep 60[0]' || true"); out != "" {
		s.Errorf("the hook's processes are left: %s", out)
	}
	s.runCommand(0, []string{"apply", "-y", "--force-upgrade", "--host", "worker-1"}, "Done.")
	here, _ := s.ranHooks()
	s.checkEqual("hooks here", []string{"before-drain worker-1", "before-drain worker-1"}, here)
}

// hooksAfterUpgrade: a host whose hook failed stays cordoned until the hook succeeds, also across another run.
func hooksAfterUpgrade(s *scenario) {
	s.hookedWith(80, newHook("tested", "after", "upgrade", true), newHook("in", "after", "upgrade", false))
	s.runCommand(0, []string{"apply", "-y"})
	s.breakHost(s.Lab.Host("worker-1"), "touch /run/fail-hooks")
	force := []string{"apply", "-y", "--force-upgrade", "--host", "worker-1"}
	s.runCommand(16, force, "hook tested failed: sh ended with status 1")
	s.checkEqual("worker-1 is closed", true, s.isCordoned("worker-1"))
	if text := s.Run(s.Context(), "status").Text(); !strings.Contains(text, "worker-1: pending hooks (upgrade)") {
		s.Errorf("status does not name the hooks that are owed\n%s", text)
	}
	s.runCommand(16, force, "hook tested failed")
	s.checkEqual("worker-1 is closed", true, s.isCordoned("worker-1"))
	s.runCommand(16, []string{"apply", "-y"}, "hook tested failed")
	s.checkEqual("worker-1 is closed", true, s.isCordoned("worker-1"))
	s.breakHost(s.Lab.Host("worker-1"), "rm /run/fail-hooks")
	s.runCommand(0, []string{"apply", "-y"}, "Done. The cluster matches the manifest.")
	s.checkEqual("worker-1 is closed", false, s.isCordoned("worker-1"))
	here, hosts := s.ranHooks()
	s.checkEqual("hooks here", slices.Repeat([]string{"after-upgrade worker-1"}, 4), here)
	s.checkEqual("hooks on hosts", map[string][]string{
		"worker-1": slices.Repeat([]string{"after-upgrade worker-1"}, 4),
	}, hosts)

	running, err := s.Start(s.Context(), force...)
	s.must(err)
	if _, ok := running.Await(operator.Step(apply.StepStarted, "operator-hooks-after-upgrade/worker-1")); !ok {
		s.Fatalf("no hook was run\n%s", running.Wait())
	}
	s.must(running.Kill())
	s.Logf("killed: exit status %d", running.Wait().Status)
	s.eventually("apply runs the hooks that are owed", 2*time.Minute, func(ctx context.Context) error {
		if r := s.Run(ctx, "apply", "-y"); r.Status != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	_, hosts = s.ranHooks()
	s.checkEqual("hooks on hosts", map[string][]string{"worker-1": {"after-upgrade worker-1"}}, hosts)
	s.checkEqual("worker-1 is closed", false, s.isCordoned("worker-1"))
	s.awaitHealthy()
}

func hooksOfReset(s *scenario) {
	s.hookedWith(80,
		newHook("leaves", "before", "reset", true), newHook("left", "after", "reset", false),
		newHook("out", "before", "drain", false),
		newHook("comes", "before", "join", false), newHook("in", "after", "join", true),
	)
	s.runCommand(0, []string{"apply", "-y"})
	s.runCommand(0, []string{"node", "replace", "worker-2", "-y", "--bundle", s.Bundle})
	here, hosts := s.ranHooks()
	s.checkEqual("hooks here", []string{"before-drain worker-2", "after-reset worker-2", "before-join worker-2"}, here)
	s.checkEqual("hooks on worker-2", map[string][]string{
		"worker-2": {"before-reset worker-2", "after-join worker-2"},
	}, hosts)
	s.runCommand(0, []string{"apply", "-y"})
	s.awaitHealthy()
	s.nothingToDo()
}

// isCordoned reports whether a Node is unschedulable.
func (s *scenario) isCordoned(name string) bool {
	s.Helper()
	var node corev1.Node
	s.must(s.Object(s.Context(), &node, "node", name))
	return node.Spec.Unschedulable
}
