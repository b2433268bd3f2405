package script

import (
	"strings"
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// hooked is a worker whose plan has these hooks on the host after its upgrade.
func hooked(hooks ...step.Command) Input {
	in := input("worker-1")
	in.Host.Role, in.Host.PublicAddress = desired.Worker, "192.0.2.7"
	in.Steps = []step.Intent{
		{Kind: step.Check}, {Kind: step.UpgradeWorker},
		step.With(step.HooksParams{
			Moment: step.Moment{When: desired.After, Activity: desired.Upgrading}, Hooks: hooks,
		}),
	}
	return in
}

func TestHooksRunAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	b := newBox(t, hooked(
		step.Command{Name: "first", Command: []string{"tell", "it's $HOME", "a  b"}, TimeoutSeconds: 60},
		step.Command{Name: "second", Command: []string{"look"}, TimeoutSeconds: 60},
	))
	b.command("tell", `[ "$2" = "a  b" ] && printf '%s %s %s %s %s %s\n' "$KUBEONE_HOOK" "$KUBEONE_MOMENT" \
		"$KUBEONE_CLUSTER" "$KUBEONE_NODE" "$KUBEONE_ROLE" "$KUBEONE_ADDRESS"`)
	b.command("look", "exit 3")
	b.must("owe_hooks check")
	b.mkdir("var/lib/kubeone/hooks")
	if len(b.tree("var/lib/kubeone/hooks")) != 0 {
		t.Error("hooks are owed for a check")
	}
	b.must("owe_hooks upgrade-worker")
	b.fails("stage_hooks after-upgrade", "hook second failed: look ended with status 3")
	if len(b.tree("var/lib/kubeone/hooks")) != 1 {
		t.Error("nothing is owed any more, and a hook has failed")
	}
	b.command("look", "")
	said := b.must("stage_hooks after-upgrade")
	in := hooked()
	want := strings.Join([]string{"first after-upgrade", in.Want.Name, in.NodeName, string(in.Host.Role),
		in.Host.PublicAddress}, " ")
	if !strings.Contains(said, want) {
		t.Errorf("the hook was told %q, want %q", said, want)
	}
	if len(b.tree("var/lib/kubeone/hooks")) != 0 {
		t.Error("hooks are owed that have run")
	}
	b.fails("stage_hooks before-drain", "no hooks before-drain are planned for this host")
	b.command("look", "exit 124")
	b.fails("stage_hooks after-upgrade", "hook second failed: look ended with status 124")
}

func TestAHookThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	b := newBox(t, hooked(step.Command{Name: "hangs", Command: []string{"sleep", "600"}, TimeoutSeconds: 1}))
	b.fails("stage_hooks after-upgrade", "hook hangs was killed: it has not ended within 1 s")
	b = newBox(t, hooked(step.Command{Name: "nowhere", Command: []string{"no-such-program"}, TimeoutSeconds: 1}))
	b.fails("stage_hooks after-upgrade", "hook nowhere cannot be run: this host has no program no-such-program")
}
