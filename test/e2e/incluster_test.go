//go:build e2e && long

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/machines/manager"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// TestControllersInTheCluster covers Machines whose controllers run on the control-plane hosts. apply installs them,
// and the manifest has workers, too.
func TestControllersInTheCluster(t *testing.T) {
	s := newScenario(t, fleet.Options{
		Name: "incluster", ControlPlanes: 3, SpareWorkers: 4, SSHUser: "ops", KubernetesVersion: olderPatch,
	})
	s.bare = s.snapshotAll()
	p := &pool{scenario: s, booted: map[string]bool{}}
	for _, part := range []struct {
		name string
		run  func(*pool)
	}{
		{"apply makes a cluster with controllers and a MachineDeployment", (*pool).foundedWithControllers},
		{"hosts are added, and become Nodes", (*pool).joinedByControllers},
		{"the process that leads dies", (*pool).leaderDied},
		{"other settings reach the hosts of Machines, one after the other", (*pool).settingsFollowed},
		{"credentials reach the hosts of Machines, and pods pull with them", (*pool).credentialsFollowed},
		{"settings that a kubelet refuses reach one host of a Machine", (*pool).settingsOfMachinesRefused},
		{"the control plane is upgraded while Machines roll, and they are after it", (*pool).upgradedWithMachines},
		{"a control-plane host is replaced, and has what the controllers need", (*pool).replacedWithControllers},
		{"the controllers are taken away, and come back", (*pool).withdrawControllers},
	} {
		if !s.runPart(part.name, func(s *scenario) {
			p.scenario = s
			part.run(p)
		}) {
			out, err := s.Kube(context.WithoutCancel(t.Context()), "-n", "kubeone-system", "logs", "--tail", "40",
				"--prefix", "-l", "app.kubernetes.io/name=kubeone-controller")
			t.Logf("%s %v", out, err)
			t.Fatal("each part needs what the one before it left")
		}
	}
}

// dynamicWorkers is the manifest's section about Machines.
const dynamicWorkers = `dynamicWorkers:
  - name: lab
    replicas: 2
    providerSpec: {cloudProviderSpec: {}}
`

// foundedWithControllers installs a cluster whose manifest enables Machines, before there are hosts for them.
func (p *pool) foundedWithControllers() {
	p.must(p.WriteManifest(operator.Replace("kind: KubeOneCluster\n", "kind: KubeOneCluster\n"+dynamicWorkers)))
	founded := p.runCommand(0, []string{"apply", "-y"}, "Done.")
	p.Logf("%5.1f s  a cluster of three with controllers", founded.Took.Seconds())
	p.must(p.FetchKubeconfig(p.Context()))
	p.connectClient()
	p.controllersRun()
	p.nothingToDo()
	p.eventually("Machines wait for hosts", time.Minute, func(ctx context.Context) error {
		all, err := p.listMachines(ctx)
		if err != nil || len(all) != 2 {
			return fmt.Errorf("%d Machines: %w", len(all), err)
		}
		for _, m := range all {
			if m.Status.Phase != v1alpha1.Pending {
				return fmt.Errorf("%s is %s", m.Name, m.Status.Phase)
			}
		}
		return nil
	})
}

// controllersRun checks that a controller process runs on each control-plane host, and that one leads.
func (p *pool) controllersRun() {
	p.Helper()
	p.eventually("controllers run on three hosts", 2*time.Minute, func(ctx context.Context) error {
		ready, err := p.Kube(ctx, "-n", "kubeone-system", "get", "daemonset", "kubeone-controller", "-o",
			"jsonpath={.status.numberReady} {.status.updatedNumberScheduled} {.status.desiredNumberScheduled}")
		if err == nil && ready != "3 3 3" {
			err = fmt.Errorf("ready, updated, wanted: %s", ready)
		}
		return err
	})
	p.leaderPod()
}

// leaderPod returns the name of the leading pod.
func (p *pool) leaderPod() string {
	p.Helper()
	holder := ""
	p.eventually("one leads", time.Minute, func(ctx context.Context) (err error) {
		holder, err = p.Kube(ctx, "-n", "kubeone-system", "get", "lease", manager.Lease, "-o",
			"jsonpath={.spec.holderIdentity}")
		if err == nil && holder == "" {
			err = fmt.Errorf("no pod leads")
		}
		return err
	})
	host, _, _ := strings.Cut(holder, "_")
	return p.runKubectl("-n", "kubeone-system", "get", "pods", "-l", "app.kubernetes.io/name=kubeone-controller",
		"--field-selector", "spec.nodeName="+host, "-o", "jsonpath={.items[0].metadata.name}")
}

// joinedByControllers fills the pool.
func (p *pool) joinedByControllers() {
	add := []string{"host", "add", "-y", "--key-file", p.Lab.Path("id_ed25519"), "--kubeconfig", p.kubeconfigPath()}
	for _, h := range p.poolHosts() {
		p.runCommand(0, append(slices.Clone(add), "ops@"+h.Address), "Added "+h.Hostname)
	}
	p.awaitReady(2, olderPatch, 6*time.Minute)
	p.nothingToDo()
	p.runCommand(0, []string{"status"}, "lab")
	p.runCommand(0, []string{"plan", "--with-machines"}, "No changes")
}

// leaderDied deletes the leading pod, and requests work from its successor at once.
func (p *pool) leaderDied() {
	p.runKubectl("-n", "kubeone-system", "delete", "pod", p.leaderPod(), "--grace-period", "0", "--force")
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "3")
	p.awaitReady(3, olderPatch, 5*time.Minute)
	p.controllersRun()
	p.nothingToDo() // the Machines belong to their users
}

// roomFor97 sets maxPods of all kubelets to 97, and keeps the section about Machines.
func roomFor97() operator.Edit {
	return operator.Replace("kind: KubeOneCluster\n",
		"kind: KubeOneCluster\nkubeletConfig: {maxPods: 97}\n"+dynamicWorkers)
}

// settingsFollowed changes a kubelet setting. apply changes the control plane, and the controllers change the hosts of
// Machines, at most one at a time. No node is drained.
func (p *pool) settingsFollowed() {
	before, closed := p.hostsByMachine(), p.countCordoned()
	p.must(p.WriteManifest(roomFor97()))
	most, over := p.mostReconfigured()
	p.runCommand(0, []string{"apply", "-y"}, "reconfigure", "Done.")
	began := time.Now()
	p.eventually("all kubelets have room for 97 pods", 4*time.Minute, func(ctx context.Context) error {
		pods, err := p.Kube(ctx, "get", "nodes", "-o", "jsonpath={.items[*].status.allocatable.pods}")
		if err == nil && strings.Join(slices.Compact(strings.Fields(pods)), " ") != "97" {
			err = fmt.Errorf("room for %s", pods)
		}
		return err
	})
	p.Logf("%5.1f s  from the end of apply until all Machines have the setting", time.Since(began).Seconds())
	p.awaitReady(3, olderPatch, time.Minute)
	over()
	p.checkEqual("hosts that were reconfigured at the same time, at most", 1, most())
	p.checkEqual("Nodes that were closed", 0, closed())
	p.checkEqual("which Machine has which host", before, p.hostsByMachine())
	p.nothingToDo()
}

// credentialsFollowed has the hosts of Machines pull with the password of a file, with another password, and with none.
// A host that joins meanwhile has the password before it runs anything.
func (p *pool) credentialsFollowed() {
	r := p.lockedRegistry()
	p.must(p.WriteManifest(roomFor97(), r.mirrorEdit()))
	before, closed := p.hostsByMachine(), p.countCordoned()
	first := p.credentialsOf(r, firstPassword)
	p.runCommand(0, []string{"apply", "-v", "-y", "-c", first}, "Secret kubeone-system/host-credentials", "Done.")
	p.runCommand(0, []string{"plan", "-c", first}, "No changes")
	p.haveCredentials(firstPassword, p.joinedHosts()...)
	p.checkPulls("first", r.imageName(), p.joinedHosts()...)

	r.setPassword(secondPassword)
	second := p.credentialsOf(r, secondPassword)
	p.runCommand(2, []string{"plan", "-c", second}, "credentials on Machine hosts differ")
	p.runCommand(0, []string{"plan"}, "No changes") // a run without the file changes nothing
	p.runCommand(0, []string{"apply", "-y", "-c", second}, "Done.")
	p.haveCredentials(secondPassword, p.joinedHosts()...)
	p.checkPulls("second", r.imageName(), p.joinedHosts()...)
	p.checkEqual("Nodes that were closed", 0, closed())
	p.checkEqual("which Machine has which host", before, p.hostsByMachine())

	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "4")
	p.awaitReady(4, olderPatch, 5*time.Minute)
	p.checkPulls("joined", r.imageName(), p.joinedHosts()...)
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "3")
	p.awaitReady(3, olderPatch, 3*time.Minute)
	p.checkNoSecrets(firstPassword, secondPassword)

	none := filepath.Join(p.TempDir(), "none.yaml")
	p.must(os.WriteFile(none, []byte("{}\n"), 0o600))
	p.must(p.WriteManifest(roomFor97()))
	p.runCommand(0, []string{"apply", "-y", "-c", none}, "Done.")
	p.haveCredentials("", p.joinedHosts()...)
	p.settingsCurrent()
	p.nothingToDo()
}

// joinedHosts returns the hosts of the pool that are Nodes.
func (p *pool) joinedHosts() []*fleet.Host {
	p.Helper()
	nodes, err := p.Nodes(p.Context())
	p.must(err)
	return slices.DeleteFunc(slices.Clone(p.poolHosts()), func(h *fleet.Host) bool {
		_, is := nodes[h.Hostname]
		return !is
	})
}

// haveCredentials waits until hosts have the password and only root can read it. An empty password means none.
func (p *pool) haveCredentials(password string, hosts ...*fleet.Host) {
	p.Helper()
	p.eventually("all hosts of Machines have the credentials", 4*time.Minute, func(ctx context.Context) error {
		found, err := operator.OnEach(ctx, hosts, `for f in /etc/containerd/conf.d/kubeone-registry-*.toml; do
[ ! -e "$f" ] || echo "$(stat -c %a:%U "$f") $(sed -n 's/^ *password = //p' "$f")"; done`)
		want := ""
		if password != "" {
			want = `600:root "` + password + `"`
		}
		for host, has := range found {
			if err == nil && strings.TrimSpace(has) != want {
				err = fmt.Errorf("%s has %q", host, has)
			}
		}
		return err
	})
}

// mostReconfigured watches how many hosts are reconfigured at a time. end stops the watch; most then returns the
// maximum.
func (p *pool) mostReconfigured() (most func() int, end func()) {
	ctx, cancel := context.WithCancel(p.Context())
	result, seen := make(chan int, 1), 0
	go func() {
		found := 0
		for ctx.Err() == nil {
			out, err := p.Kube(ctx, "get", "hosts", "-o", "jsonpath={.items[*].status.settings.state}")
			if err == nil {
				found = max(found, len(strings.Fields(out)))
			}
		}
		result <- found
	}()
	return func() int { return seen }, func() {
		cancel()
		seen = <-result
	}
}

// settingsCurrent waits until the three Machines have the settings of the record.
func (p *pool) settingsCurrent() {
	p.Helper()
	p.eventually("no Machine waits", 3*time.Minute, func(ctx context.Context) error {
		out, err := p.Kube(ctx, "-n", "kube-system", "get", "machines", "-o",
			`jsonpath={.items[*].status.conditions[?(@.type=="SettingsCurrent")].status}`)
		if err == nil && out != "True True True" {
			err = fmt.Errorf("settings are current: %q", out)
		}
		return err
	})
}

// settingsOfMachinesRefused writes settings into the record with which no kubelet starts. It edits the record directly,
// because apply would stop at the control plane and keep the record.
func (p *pool) settingsOfMachinesRefused() {
	text := p.runKubectl("-n", "kube-system", "get", "configmap", "kubeone", "-o", "jsonpath={.data.manifest}")
	p.writeRecord(editFields(func(all map[string]any) {
		all["kubeletConfig"] = map[string]any{"maxPods": 97, "systemReserved": map[string]any{"cpu": "100000"}}
	})(text))
	p.eventually("two hosts have refused them", 6*time.Minute, func(ctx context.Context) error {
		out, err := p.Kube(ctx, "get", "hosts", "-o", "jsonpath={.items[*].status.settings.state}")
		if err == nil && out != "Refused Refused" {
			err = fmt.Errorf("states of settings: %q", out)
		}
		return err
	})
	p.eventually("their Machines say so, and so does the other", time.Minute, func(ctx context.Context) error {
		out, err := p.Kube(ctx, "-n", "kube-system", "get", "machines", "-o",
			`jsonpath={.items[*].status.conditions[?(@.type=="SettingsCurrent")].reason}`)
		if got := slices.Sorted(strings.FieldsSeq(out)); err == nil && strings.Join(got, " ") !=
			"SettingsAwaited SettingsRefused SettingsRefused" {
			err = fmt.Errorf("reasons %q", got)
		}
		return err
	})
	p.awaitReady(3, olderPatch, time.Minute) // back to the previous settings
	p.writeRecord(text)
	p.settingsCurrent()
	p.nothingToDo()
}

// writeRecord replaces the manifest in the cluster record.
func (p *pool) writeRecord(manifest string) {
	p.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"manifest": manifest}})
	p.must(err)
	p.runKubectl("-n", "kube-system", "patch", "configmap", "kubeone", "--type", "merge", "-p", string(patch))
}

// upgradedWithMachines upgrades the control plane while the deployment rolls to an older version. The same command then
// upgrades all Machines in place, with one more Machine than before.
func (p *pool) upgradedWithMachines() {
	before := p.hostsByMachine()
	cache, err := components.DefaultCache()
	p.must(err)
	older, err := fleet.Bundle(p.Context(), cache, olderMinor, p.Lab.CNI, nil, p.Logf)
	p.must(err)
	p.runCommand(0, []string{"apply", "-y", "--bundle", p.Bundle, "--bundle", older}, "Done.")
	p.controllersRun()
	p.must(p.Want(p.Context(), newest))
	rolled, over := p.everRan(olderMinor)
	p.setKubelet(olderMinor)
	p.eventually("the deployment rolls", time.Minute, func(ctx context.Context) error {
		all, err := p.listMachines(ctx)
		if err == nil && !slices.ContainsFunc(all, func(m v1alpha1.Machine) bool {
			return m.Spec.Versions.Kubelet == olderMinor
		}) {
			err = errors.New("no Machine is to have it")
		}
		return err
	})
	began := time.Now()
	p.runCommand(0, []string{"apply", "-y", "--upgrade-machine-deployments", "--bundle", p.Bundle, "--bundle", older},
		"Done.",
		"upgrade MachineDeployment kube-system/lab to "+newest, "waits for the kubelets of these Machines")
	p.Logf("%5.1f s  the control plane is %s", time.Since(began).Seconds(), newest)
	over()
	n := rolled()
	p.Logf("%d Nodes were %s meanwhile", n, olderMinor)
	if n == 0 {
		p.Errorf("no Machine was rolled while the control plane was upgraded")
	}
	p.awaitReady(3, newest, 6*time.Minute)
	p.checkEqual("which Machine has which host", before, p.hostsByMachine())
	p.controllersRun()
	p.runCommand(0, []string{"apply", "-y"}, "kube-proxy", "Done.") // no Machine is behind
	p.runCommand(0, []string{"plan", "--upgrade-machine-deployments"}, "No changes")
}

// everRan watches which Machines run a version. end stops the watch; count then returns their number.
func (p *pool) everRan(kubelet string) (count func() int, end func()) {
	ctx, cancel := context.WithCancel(p.Context())
	found, done := map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			out, err := p.Kube(ctx, "get", "nodes", "-o",
				`jsonpath={range .items[*]}{.metadata.name} {.status.nodeInfo.kubeletVersion}{"\n"}{end}`)
			for line := range strings.Lines(out) {
				if name, ran, _ := strings.Cut(strings.TrimSpace(line), " "); err == nil && ran == "v"+kubelet {
					found[name] = true
				}
			}
		}
	}()
	return func() int { return len(found) }, func() {
		cancel()
		<-done
	}
}

// replacedWithControllers replaces a control-plane host, on which the controllers then run again.
func (p *pool) replacedWithControllers() {
	p.runCommand(0, []string{"node", "replace", "-y", p.Lab.ControlPlanes()[2].Hostname, "--bundle", p.Bundle})
	p.controllersRun()
	p.nothingToDo()
}

// withdrawControllers removes the controllers, without which Machines make no progress, and restores them.
func (p *pool) withdrawControllers() {
	p.must(p.WriteManifest(operator.Replace("kind: KubeOneCluster\n",
		"kind: KubeOneCluster\nmachineController: {deploy: false}\n")))
	p.runCommand(0, []string{"apply", "-y"}, "remove addon controllers", "Done.")
	p.eventually("no controllers are there", time.Minute, func(ctx context.Context) error {
		pods, err := p.Kube(ctx, "-n", "kubeone-system", "get", "pods,clusterroles", "-o", "name", "-l",
			"app.kubernetes.io/name=kubeone-controller")
		if err == nil && strings.TrimSpace(pods) != "" {
			err = fmt.Errorf("there are %s", pods)
		}
		return err
	})
	p.nothingToDo()
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "2")
	p.must(p.WriteManifest(operator.Replace("kind: KubeOneCluster\n",
		"kind: KubeOneCluster\nmachineController: {deploy: true}\n")))
	p.runCommand(0, []string{"apply", "-y"}, "Done.")
	p.controllersRun()
	p.awaitReady(2, newest, 4*time.Minute)
	p.runKubectl("-n", "kube-system", "delete", "machinedeployment", "lab")
	for _, h := range p.poolHosts() {
		p.awaitFree(h)
	}
	var hosts v1alpha1.MachineList
	p.must(p.List(p.Context(), &hosts, client.InNamespace("kube-system")))
	p.checkEqual("Machines that are left", 0, len(hosts.Items))
}
