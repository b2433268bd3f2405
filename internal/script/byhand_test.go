package script

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// unasked is the end of the script, run without a stage.
func unasked(t *testing.T) string {
	t.Helper()
	main, err := stages.ReadFile("sh/main.sh")
	if err != nil {
		t.Fatal(err)
	}
	return "set --\n" + string(main)
}

// planned is a box for the host with that name, whose plan has these steps. Each of its stages only says that it runs,
// and what the others have left in a variable of theirs.
func planned(t *testing.T, name string, steps ...step.Intent) *box {
	t.Helper()
	in := input(name)
	in.Steps = steps
	b := newBox(t, in)
	b.command("systemctl", "exit 3") // no step of ours is active
	for _, s := range steps {
		b.script += "\nstage_" + strings.ReplaceAll(Stage(s), "-", "_") +
			"() { say \"runs ${MINE:-alone}\"; MINE=after-another; }\n"
	}
	return b
}

func TestWithoutAStageAllThatIsPlannedRuns(t *testing.T) {
	t.Parallel()
	b := planned(t, "cp-1", only(step.Prepare, step.Images, step.Init)...)
	const want = `prepare
runs alone
images
runs alone
init
runs alone
done: this host matches its plan. kubeone apply does what concerns the cluster.`
	if got := b.must(unasked(t)); got != want {
		t.Errorf("printed\n%s", got)
	}
}

// A cluster begins with a token that is never used. The operator must provide all other secrets before the first stage.
func TestSecretsAreThereBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	b := planned(t, "cp-1", only(step.Init)...)
	dd, err := exec.LookPath("dd")
	if err == nil {
		err = os.Symlink(dd, b.path("bin/dd"))
	}
	if err != nil {
		t.Fatal(err)
	}
	b.script += "\nstage_init() { cat \"$(secret token)\"; }\n"
	if got := b.must(unasked(t)); !regexp.MustCompile(`\n[a-z0-9]{6}\.[a-z0-9]{16}\n`).MatchString(got) {
		t.Errorf("printed\n%s", got)
	}
	for name, tt := range map[string]struct {
		steps   []step.Intent
		missing string
	}{
		"cp-2": {only(step.Prepare, step.CopyPKI, step.JoinPrepare, step.JoinEtcd), "pki.tar token discovery.conf"},
		"w-1":  {[]step.Intent{{Kind: step.JoinWorker, Role: desired.Worker}}, "token discovery.conf"},
	} {
		b := planned(t, name, tt.steps...)
		r := b.run(unasked(t))
		if r.code == 0 || r.out != "" || !strings.Contains(r.err, "missing in /run/kubeone/secrets: "+tt.missing+".") {
			t.Errorf("%s: %+v", name, r)
		}
		for _, file := range strings.Fields(tt.missing) {
			b.write("run/kubeone/secrets/"+file, "x")
		}
		b.must(unasked(t))
		if left := b.tree("run"); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

func TestAStageThatFailsIsTheLast(t *testing.T) {
	t.Parallel()
	b := planned(t, "w-1", step.Intent{Kind: step.Prepare}, step.Intent{Kind: step.JoinWorker, Role: desired.Worker})
	b.write("run/kubeone/secrets/token", "x")
	b.write("run/kubeone/secrets/discovery.conf", "x")
	b.script += "\nstage_prepare() { false; say goes on; }\n"
	if r := b.run(unasked(t)); r.code != 1 || r.out != "prepare" {
		t.Errorf("%+v", r)
	}
	if left := b.tree("run"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What takes something away, or is for others to allow, is run by its name alone.
func TestNothingIsTakenAwayUnasked(t *testing.T) {
	t.Parallel()
	for _, k := range step.Kinds() {
		if k.ByHand() && (!k.OnHost() || k.ClearsHost()) {
			t.Errorf("%s runs unasked", k)
		}
	}
	b := planned(t, "cp-1", only(step.ResetHost)...)
	r := b.run(unasked(t))
	if r.code == 0 || r.out != "" || !strings.Contains(r.err, "nothing is done here; there are: reset") {
		t.Errorf("%+v", r)
	}
	b = planned(t, "cp-1", only(step.Images, step.SystemAddons)...)
	got := b.must(unasked(t))
	if !strings.Contains(got, "matches its plan, but for: system-addons.") || strings.Count(got, "runs") != 1 {
		t.Errorf("printed\n%s", got)
	}
}

// What a run has left on a host, and what has been done, is not done again: the host may be of another version by now.
func TestByHandNothingIsDoneAnew(t *testing.T) {
	t.Parallel()
	b := planned(t, "cp-1", only(step.Prepare, step.Init)...)
	b.write("etc/kubeone/marker", "cluster=alpha\nrole=control-plane\ncomplete=yes\n")
	if got := b.must(unasked(t)); !strings.HasPrefix(got, "this host is in the cluster already") ||
		strings.Contains(got, "runs") {
		t.Errorf("printed\n%s", got)
	}
	b.write("etc/kubeone/marker", "cluster=alpha\nrole=control-plane\ncomplete=no\n")
	if got := b.must(unasked(t)); !strings.Contains(got, "init\nruns alone") {
		t.Errorf("a join that has not ended: printed\n%s", got)
	}
	b.mkdir("var/lib/kubeone/step")
	b.fails("cd @ROOT@/var/lib/kubeone/step\n"+unasked(t), "this is the script of an earlier run")
}

func TestByHandNothingRunsBesideKubeone(t *testing.T) {
	t.Parallel()
	b := planned(t, "cp-1", only(step.Images)...)
	b.command("systemctl", "")
	b.fails(unasked(t), "kubeone runs a step on this host")
	b.command("systemctl", "exit 3")
	b.write("var/lib/kubeone/lock/beat", "")
	b.fails(unasked(t), "kubeone works on this cluster")
	b.must("touch -d '1 minute ago' @ROOT@/var/lib/kubeone/lock/beat\n" + unasked(t))
}

func TestByHandAHostIsDrainedBeforeItsUpgrade(t *testing.T) {
	t.Parallel()
	b := planned(t, "w-1", step.Intent{Kind: step.Fetch}, step.Intent{Kind: step.UpgradeWorker, Role: desired.Worker})
	b.command("curl", "exit 7")
	b.fails(unasked(t), "cannot ask https://lb.example.com:6443 whether this host is drained")
	b.command("curl", `echo '{"spec": {"podCIDR": "10.244.1.0/24"}}'`)
	b.fails(unasked(t), "drain this host first: kubectl drain w-1")
	b.command("curl", `echo '{"spec": {"unschedulable": true}}'`)
	if got := b.must(unasked(t)); strings.Count(got, "runs alone") != 2 {
		t.Errorf("printed\n%s", got)
	}
}
