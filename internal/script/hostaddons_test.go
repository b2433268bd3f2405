package script

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
)

// withHostAddons is a host's input with default addons.
func withHostAddons(name, system string, addons ...string) Input {
	in := input(name)
	in.OS = system
	for _, addon := range addons {
		in.Want.HostAddons = append(in.Want.HostAddons, desired.DefaultHostAddon(addon))
	}
	return in
}

// newAddonHost is a joined host whose systemd does what it is told.
func newAddonHost(t *testing.T, in Input) *box {
	t.Helper()
	b := newBox(t, in)
	b.command("systemctl", "")
	b.write("etc/kubeone/marker", "cluster=alpha\ncomplete=yes\n")
	return b
}

func TestTimersOfAddonsComeAndGo(t *testing.T) {
	t.Parallel()
	const conf = "etc/apt/apt.conf.d/99kubeone-unattended-upgrades"
	defrag := []string{
		"etc/kubeone/addons/etcd-defrag.sh", "etc/systemd/system/kubeone-etcd-defrag.service",
		"etc/systemd/system/kubeone-etcd-defrag.timer",
	}
	upgrades := []string{
		"etc/systemd/system/kubeone-unattended-upgrades.service", "etc/systemd/system/kubeone-unattended-upgrades.timer",
	}
	for name, c := range map[string]struct {
		in    Input
		files []string
	}{
		etcdDefrag: {withHostAddons("cp-1", "debian", etcdDefrag), defrag},
		"on Debian": {withHostAddons("w-1", "debian", unattendedUpgrades),
			slices.Concat([]string{conf}, upgrades)},
		"on RHEL": {withHostAddons("w-1", "rhel", unattendedUpgrades),
			slices.Concat([]string{"etc/kubeone/addons/dnf-automatic.conf"}, upgrades)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newAddonHost(t, c.in)
			b.command("unattended-upgrade", "")
			b.command("dnf-automatic", "")
			addon := c.in.Want.HostAddons[0].Name
			b.must("record kernel=1")
			bare := slices.Sorted(maps.Keys(b.tree("etc")))
			_ = b.calls()
			b.must("configure_host_addons; record $HOST_DIGESTS")
			for _, file := range c.files {
				if b.read(file) == "" {
					t.Errorf("%s is missing", file)
				}
			}
			timer := "kubeone-" + addon + ".timer"
			want := []string{"systemctl daemon-reload", "systemctl -q enable " + timer, "systemctl restart " + timer}
			if diff := cmp.Diff(want, b.calls()); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(b.read("etc/kubeone/digests"), addon+" ") {
				t.Error("the host does not note the addon")
			}
			b.write(c.files[0], "edited")
			if left := b.left(); !strings.Contains(left, c.files[0]) {
				t.Errorf("an edit is not found: %s", left)
			}
			b.must("configure_host_addons; record $HOST_DIGESTS")
			_ = b.calls()
			b.must("configure_host_addons")
			if calls := b.calls(); slices.ContainsFunc(calls, func(c string) bool { return strings.Contains(c, "restart") }) {
				t.Errorf("what is right already is not left alone: %q", calls)
			}
			b.must("HOST_ADDONS=; configure_host_addons; rm -f \"$DIGESTS\"; record kernel=1")
			if diff := cmp.Diff(bare, slices.Sorted(maps.Keys(b.tree("etc")))); diff != "" {
				t.Errorf("left: %s", diff)
			}
			if !slices.Contains(b.calls(), "systemctl disable --now "+timer) {
				t.Error("the timer was not stopped")
			}
		})
	}
}

const (
	etcdDefrag         = desired.EtcdDefragAddon
	unattendedUpgrades = desired.UnattendedUpgradesAddon
)

// A removal that was killed is repeated until the record is gone, even if the files are.
func TestAKilledRemovalOfAnAddonIsRepeated(t *testing.T) {
	t.Parallel()
	b := newAddonHost(t, withHostAddons("cp-1", "debian", etcdDefrag))
	b.must("configure_host_addons; record kernel=1 etcd-defrag=2")
	b.run("HOST_ADDONS=\nrm() { command rm \"$@\"; exit 9; }\nconfigure_host_addons")
	b.must("HOST_ADDONS=; configure_host_addons")
	if got := b.read("etc/kubeone/digests"); got != "kernel 1\n" {
		t.Errorf("the host notes %q", got)
	}
	if got := b.read("etc/kubeone/files"); strings.Contains(got, "etcd-defrag") {
		t.Errorf("the host notes files: %q", got)
	}
}

func TestTheProgramForUpgradesIsInstalledOnce(t *testing.T) {
	t.Parallel()
	b := newAddonHost(t, withHostAddons("w-1", "debian", unattendedUpgrades))
	b.command("debconf-set-selections", `read -r answer; printf '%s\n' "$answer" >>'`+b.path("answers")+`'`)
	b.command("apt-get", "exit 100")
	b.fails("configure_host_addons", "cannot install unattended-upgrades: give this host a package source")
	if b.read("etc/systemd/system/kubeone-unattended-upgrades.timer") != "" {
		t.Error("without the program, there is a timer")
	}
	b.command("apt-get", `case "$*" in *" install "*) : >'`+b.path("bin/unattended-upgrade")+`'
		chmod 0700 '`+b.path("bin/unattended-upgrade")+`' ;; esac`)
	b.must("configure_host_addons")
	if got := b.read("answers"); !strings.Contains(got, "enable_auto_updates boolean false") {
		t.Errorf("apt's own timers would upgrade packages: %q", got)
	}
	_ = b.calls()
	b.must("configure_host_addons")
	if slices.ContainsFunc(b.calls(), func(c string) bool { return strings.HasPrefix(c, "apt-get") }) {
		t.Error("the package is installed twice")
	}
	b = newAddonHost(t, withHostAddons("w-1", "flatcar", unattendedUpgrades))
	b.fails("configure_host_addons", "remove the addon from the manifest")
}

// A restored timer runs with its own file.
func TestARestoredTimerIsStartedAgain(t *testing.T) {
	t.Parallel()
	b := joined(t, "w-1")
	const timer = "etc/systemd/system/kubeone-unattended-upgrades.timer"
	b.write(timer, "of kubeone\n")
	b.must("record unattended-upgrades=1")
	b.write(timer, "edited\n")
	_ = b.calls()
	b.must("RESTORE='" + b.path(timer) + "'; stage_restore_files")
	if got := b.read(timer); got != "of kubeone\n" {
		t.Errorf("the file is %q", got)
	}
	if calls := b.calls(); !slices.Contains(calls, "systemctl restart kubeone-unattended-upgrades.timer") ||
		slices.Contains(calls, "systemctl restart kubelet") {
		t.Errorf("calls: %q", calls)
	}
}

// etcdMember is a host with the addon, and an etcd with these answers.
type etcdMember struct {
	members, health string
	size, used      int
	leader          string // ID of the leader in decimal; the member's is 11
}

func healthyMember() etcdMember {
	return etcdMember{
		members: `b, started, cp-1, https://1:2380, https://1:2379, false\n` +
			`c, started, cp-2, https://2:2380, https://2:2379, false\n`,
		health: `[{"endpoint":"https://1:2379","health":true},{"endpoint":"https://2:2379","health":true}]`,
		size:   1000, used: 600, leader: "12",
	}
}

// defragments runs the addon's program.
func (m etcdMember) defragments(t *testing.T, before string) (b *box, out string) {
	t.Helper()
	in := withHostAddons("cp-1", "debian", etcdDefrag)
	b = newAddonHost(t, in)
	for _, tool := range []string{"flock", "tail"} {
		at, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, b.path("bin/"+tool)); err != nil {
			t.Fatal(err)
		}
	}
	b.mkdir("opt/kubeone")
	if err := os.Symlink(b.path("bin"), b.path("opt/kubeone/bin")); err != nil {
		t.Fatal(err)
	}
	done := b.path("done")
	b.command("ctr", `case "$*" in
	*"tasks ls"*) printf 'TASK PID STATUS\netcd-1 2 RUNNING\n' ;;
	*"containers ls"*) printf 'etcd-1\n' ;;
	*"member list"*) printf '`+m.members+`' ;;
	*"endpoint health"*) printf '%s\n' '`+m.health+`' ;;
	*"endpoint status"*) size=`+strconv.Itoa(m.size)+`
		[ ! -e '`+done+`' ] || size=`+strconv.Itoa(m.used)+`
		printf '[{"Endpoint":"x","Status":{"header":{"cluster_id":1,"member_id":11,"revision":9},"version":"3.6.0",'
		printf '"dbSize":%s,"leader":`+m.leader+`,"raftIndex":9,"dbSizeInUse":`+strconv.Itoa(m.used)+`}}]\n' "$size" ;;
	*" move-leader "*) ;;
	*" defrag"*) : >'`+done+`' ;;
	*) exit 9 ;;
	esac`)
	b.must("configure_host_addons")
	r := b.run(before + "\nTHRESHOLD=30 PATH='" + b.path("bin") + "' sh @ROOT@/etc/kubeone/addons/etcd-defrag.sh")
	return b, r.out + r.err
}

func TestAMemberIsDefragmentedOnlyIfThatIsWorthItAndSafe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*etcdMember)
		before  string
		says    string
		does    bool
		handsTo string
	}{
		"much is free": {func(*etcdMember) {}, "", "1000 bytes before, 600 bytes now", true, ""},
		"the leader":   {func(m *etcdMember) { m.leader = "11" }, "", "1000 bytes before, 600 bytes now", true, "c"},
		"the only member": {func(m *etcdMember) {
			m.leader, m.members = "11", `b, started, cp-1, https://1:2380, https://1:2379, false\n`
			m.health = `[{"endpoint":"https://1:2379","health":true}]`
		}, "", "600 bytes now", true, ""},
		"little is free": {func(m *etcdMember) { m.used = 701 }, "", "29 % of 1000 bytes are free", false, ""},
		"a member is not healthy": {func(m *etcdMember) {
			m.health = strings.Replace(m.health, "true", "false", 1)
		}, "", "1 of 2 members of etcd are healthy", false, ""},
		"a member does not answer": {func(m *etcdMember) { m.health = "" }, "", "0 of 2 members", false, ""},
		"a learner": {func(m *etcdMember) {
			m.members = strings.Replace(m.members, "false", "true", 1)
		}, "", "a learner, so nothing is done: b, started, cp-1", false, ""},
		"a member that has not started": {func(m *etcdMember) {
			m.members += `d, unstarted, , https://3:2380, , false\n`
		}, "", "has not started", false, ""},
		"no size": {func(m *etcdMember) { m.size = 0 }, "", "does not tell the size", false, ""},
		"kubeone works on the host": {func(*etcdMember) {}, "mkdir -p @ROOT@/var/lib/kubeone/lock; " +
			": >@ROOT@/var/lib/kubeone/lock/beat", "kubeone works on this host", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := healthyMember()
			c.change(&m)
			b, out := m.defragments(t, c.before)
			if !strings.Contains(out, c.says) {
				t.Errorf("it says %q, not %q", out, c.says)
			}
			calls := b.calls()
			called := func(what string) bool {
				return slices.ContainsFunc(calls, func(c string) bool { return strings.Contains(c, what) })
			}
			if got := called(" defrag"); got != c.does {
				t.Errorf("defragmented: %t", got)
			}
			if got := called(" move-leader " + c.handsTo); got != (c.handsTo != "") {
				t.Errorf("leadership was handed over: %t", got)
			}
		})
	}
}
