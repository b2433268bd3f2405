//go:build e2e && long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kubeone/api/cluster/v1alpha1"
	kubeone "kubeone/api/kubeone/v1alpha1"
	"kubeone/internal/machines/controllers"
	"kubeone/internal/machines/machine"
	"kubeone/test/e2e/operator"
	"kubeone/test/lab/components"
	"kubeone/test/lab/fleet"
)

// poolSize is the number of hosts in the pool. One more host joins as a worker of the manifest.
const poolSize = 6

// pool is a cluster with a pool of hosts, and its controller processes.
type pool struct {
	*scenario
	client.Client
	bundles []string // flags
	running []*operator.Controllers
	started int             // number of processes so far
	booted  map[string]bool // hosts that have rebooted: docker gave them other ports
}

// TestMachinesOnHosts covers the life of Machines on existing hosts as docs/machines.md describes it, with a leading
// and a standby controller process.
func TestMachinesOnHosts(t *testing.T) {
	s := newScenario(t, fleet.Options{Name: "machines", ControlPlanes: 3, SpareWorkers: poolSize + 1, SSHUser: "ops"})
	s.bare = s.snapshotAll()
	s.foundCluster()
	p := &pool{scenario: s, booted: map[string]bool{}}
	defer func() {
		for _, c := range p.running {
			c.Kill()
			if t.Failed() {
				t.Logf("%s", c.Tail())
			}
		}
	}()
	for _, part := range []struct {
		name string
		run  func(*pool)
	}{
		{"hosts become a pool", (*pool).fillPool},
		{"three Machines become Nodes, and a fourth", (*pool).applyDeployment},
		{"apply leaves their hosts alone, and refuses them by name", (*pool).leftAlone},
		{"a worker of the manifest joins while the deployment rolls, under load", (*pool).rollMachines},
		{"kubelets lose their serving certificates while no command runs", (*pool).checkServingCertificates},
		{"one Machine's kubelet and runtime go down and up, alone", (*pool).inPlace},
		{"all but one go, and their hosts are bare, free, and taken again", (*pool).scaleDownAndUp},
		{"the API is away while a Machine is being made", (*pool).apiAway},
		{"a host dies, and its Machine gets another; two of three die, and none is replaced", (*pool).killHosts},
		{"a Machine that is gone without having returned its host", (*pool).orphanHost},
		{"the controllers are killed again and again", (*pool).killControllersRepeatedly},
		{"etcd is restored from before a claim", (*pool).restoreSnapshot},
		{"the pool is emptied", (*pool).emptyPool},
		{"the cluster is reset, and the hosts of its Machines are returned first", (*pool).endCluster},
	} {
		if !s.runPart(part.name, func(s *scenario) {
			p.scenario = s
			part.run(p)
		}) {
			t.Fatal("each part needs what the one before it left")
		}
	}
}

func (p *pool) kubeconfigPath() string { return filepath.Join(p.Dir, "pool.conf") }

// fillPool adds hosts to the pool with the command.
func (p *pool) fillPool() {
	p.connectClient()
	conf, key := p.kubeconfigPath(), p.Lab.Path("id_ed25519")
	add := []string{"host", "add", "-y", "--key-file", key, "--kubeconfig", conf}
	list := []string{"host", "list", "--kubeconfig", conf}
	p.runCommand(15, list, "has no host pool: add a host with kubeone host add")
	p.runCommand(15, slices.Concat(add, []string{"ops@" + p.Lab.ControlPlanes()[0].Address}),
		"is in the manifest of the cluster machines")
	p.runCommand(14, slices.Concat(add, []string{"ops@" + p.poolHosts()[0].Address + ":1"}), "connection refused")
	p.runCommand(13, slices.Concat(add, []string{"nobody@" + p.poolHosts()[0].Address}), "nobody")
	for i, h := range p.poolHosts() {
		more := append(add, "--failure-domain", "rack-"+strconv.Itoa(i%3), "--labels", "pool=lab", "ops@"+h.Address)
		if i == 0 {
			more = append(more, "--name", h.Hostname, "--bastion", "ops@"+p.Lab.ControlPlanes()[1].Address,
				"--private-address", h.Address)
		}
		p.runCommand(0, more, "Added "+h.Hostname)
	}
	p.runCommand(0, slices.Concat(add, []string{"ops@" + p.poolHosts()[1].Address}), "already in the pool")
	listed := p.runCommand(0, list, p.poolHosts()[0].Hostname, "rack-2", "Free")
	p.checkEqual("lines of the list", poolSize+1, strings.Count(listed.Stdout, "\n"))
	p.unchangedButForTheKey()

	cache, err := components.DefaultCache()
	p.must(err)
	for _, version := range []string{olderMinor, newest} {
		bundle, err := fleet.Bundle(p.Context(), cache, version, p.Lab.CNI, nil, p.Logf)
		p.must(err)
		p.bundles = append(p.bundles, "--bundle", bundle)
	}
	p.startControllers("controller")
	dir := filepath.Join(p.Dir, "bundles") // empty when the process starts
	p.must(os.Mkdir(dir, 0o700))
	p.startControllers("controller", "--bundle-dir", dir, "--metrics-bind-address", "127.0.0.1:0",
		"--health-probe-bind-address", "127.0.0.1:0")
	for i, bundle := range p.bundles {
		if bundle != "--bundle" {
			p.must(os.Symlink(bundle, filepath.Join(dir, strconv.Itoa(i)+".tar")))
		}
	}
}

// connectClient fetches a kubeconfig, and creates a client.
func (p *pool) connectClient() {
	p.Helper()
	p.runCommand(0, []string{"kubeconfig", "-f", p.kubeconfigPath()})
	text, err := os.ReadFile(p.kubeconfigPath())
	p.must(err)
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	p.must(err)
	scheme, err := controllers.Scheme()
	p.must(err)
	config.QPS = -1
	p.Client, err = client.New(config, client.Options{Scheme: scheme})
	p.must(err)
}

// unchangedButForTheKey checks that adding the hosts changed only their authorized key.
func (p *pool) unchangedButForTheKey() {
	p.Helper()
	for _, h := range p.poolHosts() {
		p.checkUnchanged(map[string][]string{h.Hostname: p.bare[h.Hostname]}, p.snapshotOf(h))
	}
}

// startControllers starts another controller process.
func (p *pool) startControllers(args ...string) {
	p.Helper()
	p.started++
	args = append(args, "--kubeconfig", p.kubeconfigPath())
	if !slices.Contains(args, "--bundle-dir") {
		args = append(args, p.bundles...)
	}
	c, err := p.StartControllers(p.Context(), fmt.Sprintf("controllers-%d.log", p.started), args)
	p.must(err)
	p.running = append(p.running, c)
}

// poolHosts returns the hosts of the pool.
func (p *pool) poolHosts() []*fleet.Host {
	all := p.Lab.Spares()
	return all[:min(poolSize, len(all))]
}

// deployment is a MachineDeployment as a user writes it.
const deployment = `apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata: {name: lab, namespace: kube-system}
spec:
  replicas: 3
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {set: lab}}
  template:
    metadata: {labels: {set: lab}}
    spec:
      metadata: {labels: {tier: pool}}
      versions: {kubelet: %s}
      providerSpec: {value: {cloudProvider: ssh, cloudProviderSpec: {hostSelector: {matchLabels: {pool: lab}},
          silentHostTimeoutSeconds: 90}}}
`

// applyDeployment applies the deployment.
func (p *pool) applyDeployment() {
	path := filepath.Join(p.Dir, "deployment.yaml")
	p.must(os.WriteFile(path, fmt.Appendf(nil, deployment, olderMinor), 0o600))
	p.eventually("the kinds are defined", time.Minute, func(ctx context.Context) error {
		_, err := p.Kube(ctx, "get", "machinedeployments", "-A")
		return err
	})
	p.runKubectl("apply", "-f", path)
	p.awaitReady(3, olderMinor, 6*time.Minute)
	domains := map[string]int{}
	for _, h := range p.listHosts() {
		if h.Status.Claim != nil {
			domains[h.Spec.FailureDomain]++
		}
	}
	p.checkEqual("Machines by failure domain", map[string]int{"rack-0": 1, "rack-1": 1, "rack-2": 1}, domains)
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "4")
	p.awaitReady(4, olderMinor, 4*time.Minute)
}

func (p *pool) listMachines(ctx context.Context) ([]v1alpha1.Machine, error) {
	var all v1alpha1.MachineList
	err := p.List(ctx, &all)
	slices.SortFunc(all.Items, func(a, b v1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return all.Items, err
}

func (p *pool) listHosts() []kubeone.Host {
	p.Helper()
	var all kubeone.HostList
	p.must(p.List(p.Context(), &all))
	return all.Items
}

// checkMachine returns an error unless a Machine is a ready Node with that kubelet.
func (p *pool) checkMachine(ctx context.Context, m v1alpha1.Machine, kubelet string) error {
	s := m.Status
	if m.DeletionTimestamp != nil || s.Phase != v1alpha1.Running || s.NodeRef == nil || s.Versions == nil ||
		s.Versions.Kubelet != kubelet || s.ObservedGeneration != m.Generation {
		text, _ := json.Marshal(s)
		return fmt.Errorf("%s: %s", m.Name, text)
	}
	node := &corev1.Node{}
	if err := p.Get(ctx, client.ObjectKey{Name: s.NodeRef.Name}, node); err != nil {
		return err
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready || node.Status.NodeInfo.KubeletVersion != "v"+kubelet || node.Spec.Unschedulable {
		return fmt.Errorf("node %s of %s: ready %t, %s, closed %t", node.Name, m.Name, ready,
			node.Status.NodeInfo.KubeletVersion, node.Spec.Unschedulable)
	}
	return nil
}

// awaitReady waits until there are exactly count Machines, all of them ready Nodes of that version, and the
// deployment's status agrees.
func (p *pool) awaitReady(count int, kubelet string, limit time.Duration) {
	p.Helper()
	began := time.Now()
	p.eventually(fmt.Sprintf("%d Machines run %s", count, kubelet), limit, func(ctx context.Context) error {
		return p.checkComplete(ctx, count, kubelet)
	})
	p.Logf("%5.1f s  %d Machines run %s", time.Since(began).Seconds(), count, kubelet)
}

// checkComplete returns nil when the deployment has count Machines and all run that version.
func (p *pool) checkComplete(ctx context.Context, count int, kubelet string) error {
	all, err := p.listMachines(ctx)
	if err != nil {
		return err
	}
	if len(all) != count {
		return fmt.Errorf("there are %d Machines", len(all))
	}
	for _, m := range all {
		if err := p.checkMachine(ctx, m, kubelet); err != nil {
			return err
		}
	}
	d := &v1alpha1.MachineDeployment{}
	if err := p.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "lab"}, d); err != nil {
		return err
	}
	if s := d.Status; s.ObservedGeneration != d.Generation || int(s.ReadyReplicas) != count ||
		int(s.UpdatedReplicas) != count {
		return fmt.Errorf("the deployment says %+v", s)
	}
	return nil
}

// leftAlone puts a host of the pool into the manifest, too.
func (p *pool) leftAlone() {
	p.nothingToDo()
	all, err := p.listMachines(p.Context())
	p.must(err)
	m, h := all[0], p.Lab.Host(all[0].Status.NodeRef.Name)
	p.must(p.Lab.SetSpare(p.Context(), h, false))
	p.must(p.WriteManifest())
	p.runCommand(2, []string{"plan"}, "the host belongs to Machine kube-system/"+m.Name)
	p.runCommand(15, []string{"reset", "-y", "--host", h.Hostname},
		"kubectl -n kube-system delete machine "+m.Name+" returns it")
	p.must(p.Lab.SetSpare(p.Context(), h, true))
	p.must(p.WriteManifest())
	p.nothingToDo()
}

// setKubelet changes the kubelet version of a deployment.
func (p *pool) setKubelet(version string) {
	p.Helper()
	p.runKubectl("-n", "kube-system", "patch", "machinedeployment", "lab", "--type", "merge", "-p",
		fmt.Sprintf(`{"spec":{"template":{"spec":{"versions":{"kubelet":%q}}}}}`, version))
}

// hostsByMachine returns the host of each Machine.
func (p *pool) hostsByMachine() map[string]string {
	p.Helper()
	out := map[string]string{}
	all, err := p.listMachines(p.Context())
	p.must(err)
	for _, m := range all {
		if m.Status.NodeRef != nil {
			out[m.Name] = m.Status.NodeRef.Name
		}
	}
	return out
}

// rollMachines upgrades all Machines in place to another minor version, one after the other, under load, while apply
// adds a worker.
func (p *pool) rollMachines() {
	p.must(p.ImportAgnhost(p.Context(), p.poolHosts()))
	before := p.hostsByMachine()
	load := p.startLoad()
	closed := p.countCordoned()
	began := time.Now()
	p.setKubelet(newest)
	p.must(p.Lab.SetSpare(p.Context(), p.Lab.Spares()[poolSize], false))
	p.must(p.WriteManifest())
	static := p.runCommand(0, []string{"apply", "-y"}, "Done.")
	p.must(p.ImportAgnhost(p.Context(), p.Members()))
	p.awaitReady(4, newest, 10*time.Minute)
	p.Logf("%5.1f s  four kubelets %s to %s, one after the other; apply with one worker %.1f s",
		time.Since(began).Seconds(), olderMinor, newest, static.Took.Seconds())
	p.endLoad(load)
	// Hosts that are claimed again lack its image. Its budget would block each drain of the next parts.
	p.runKubectl("-n", "load", "delete", "deployment,poddisruptionbudget,service", "web")
	if most := closed(); most > 1 {
		p.Errorf("%d Nodes were closed at the same time, want one after the other", most)
	}
	p.checkEqual("which Machine has which host", before, p.hostsByMachine())
	p.nothingToDo()
}

// countCordoned watches how many Nodes are cordoned at the same time. The returned function returns the maximum.
func (p *pool) countCordoned() func() int {
	ctx, cancel := context.WithCancel(p.Context())
	most := make(chan int)
	go func() {
		worst := 0
		for ctx.Err() == nil {
			var nodes corev1.NodeList
			if err := p.List(ctx, &nodes); err == nil {
				n := 0
				for _, node := range nodes.Items {
					if node.Spec.Unschedulable {
						n++
					}
				}
				worst = max(worst, n)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		most <- worst
	}()
	return func() int {
		cancel()
		return <-most
	}
}

// unitStarts returns when the kubelet and containerd of each host started.
func (p *pool) unitStarts(hosts ...*fleet.Host) map[string]string {
	p.Helper()
	out, err := operator.OnEach(p.Context(), hosts,
		"systemctl show -p ActiveEnterTimestampMonotonic kubelet containerd")
	p.must(err)
	return out
}

// inPlace changes the version of a Machine without an owner down and up.
func (p *pool) inPlace() {
	name := "alone"
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
	m.Spec.ProviderSpec.Value.CloudProvider = "ssh"
	m.Spec.Versions.Kubelet = newest
	p.must(p.Create(p.Context(), m))
	p.awaitVersions(name, newest, "", 4*time.Minute)
	at := p.hostsByMachine()[name]
	var others []*fleet.Host
	for of, host := range p.hostsByMachine() {
		if of != name {
			others = append(others, p.Lab.Host(host))
		}
	}
	others = append(others, p.Lab.ControlPlanes()...)
	before := p.unitStarts(others...)
	for _, to := range []struct{ kubelet, containerd string }{
		{olderMinor, ""}, {newest, ""}, {newest, plainContainerd(olderMinor)}, {newest, plainContainerd(newest)},
	} {
		p.must(p.Get(p.Context(), client.ObjectKeyFromObject(m), m))
		was := m.DeepCopy()
		m.Spec.Versions.Kubelet = to.kubelet
		if to.containerd != "" {
			m.Spec.Versions.ContainerRuntime = &v1alpha1.ContainerRuntimeInfo{
				Name: "containerd", Version: to.containerd,
			}
		}
		p.must(p.Patch(p.Context(), m, client.MergeFrom(was)))
		p.awaitVersions(name, to.kubelet, to.containerd, 4*time.Minute)
	}
	p.checkEqual("its host", at, p.hostsByMachine()[name])
	p.checkEqual("since when kubelets and containerds of others run", before, p.unitStarts(others...))
	p.must(p.Delete(p.Context(), m))
	p.awaitFree(p.Lab.Host(at))
}

// awaitVersions waits until a Machine is a ready Node of these versions.
func (p *pool) awaitVersions(name, kubelet, containerd string, limit time.Duration) {
	p.Helper()
	began := time.Now()
	p.eventually(name+" runs "+kubelet, limit, func(ctx context.Context) error {
		m := &v1alpha1.Machine{}
		if err := p.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: name}, m); err != nil {
			return err
		}
		if err := p.checkMachine(ctx, *m, kubelet); err != nil {
			return err
		}
		node := &corev1.Node{}
		if err := p.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
			return err
		}
		if is := node.Status.NodeInfo.ContainerRuntimeVersion; !strings.HasSuffix(is, containerd) {
			return fmt.Errorf("its runtime is %s, want %s", is, containerd)
		}
		return nil
	})
	p.Logf("%5.1f s  Machine %s: kubelet %s, containerd %s", time.Since(began).Seconds(), name, kubelet, containerd)
}

// killControllersRepeatedly has the deployment change version down and up while the controllers are killed 30 times.
// The leader is killed when it has begun one to four more steps on hosts, and now and then the standby, too. Finished
// steps are not repeated, so the number of version changes varies.
func (p *pool) killControllersRepeatedly() {
	before := p.hostsByMachine()
	down, standby := true, 0
	version := olderMinor
	p.setKubelet(version)
	for n := 0; n < 30; {
		leader := p.atWork(1+n%4, 3, version)
		if leader < 0 { // the change is complete
			version, down = newest, !down
			if down {
				version = olderMinor
			}
			p.setKubelet(version)
			continue
		}
		p.killController(leader)
		if n++; n%5 == 0 {
			p.killController(0)
			standby++
		}
	}
	p.setKubelet(newest)
	p.awaitReady(3, newest, 10*time.Minute)
	p.Logf("the leader was killed 30 times, and the standby %d times", standby)
	p.checkEqual("which Machine has which host", before, p.hostsByMachine())
	p.claimedOnce()
}

// killController kills a controller process, and starts another.
func (p *pool) killController(n int) {
	p.Helper()
	p.running[n].Kill()
	p.running = slices.Delete(p.running, n, n+1)
	p.startControllers("controller")
}

// atWork waits until a process has begun that many more steps on hosts, and returns its index. It returns -1 when the
// deployment is complete first.
func (p *pool) atWork(more, machines int, version string) int {
	p.Helper()
	steps := func(c *operator.Controllers) int { return strings.Count(c.Log(), `"msg":"step-started"`) }
	var before []int
	for _, c := range p.running {
		before = append(before, steps(c))
	}
	which := -1
	p.eventually("a step begins", 3*time.Minute, func(ctx context.Context) error {
		which = slices.IndexFunc(p.running, func(c *operator.Controllers) bool {
			return steps(c) >= before[slices.Index(p.running, c)]+more
		})
		if which < 0 {
			return p.checkComplete(ctx, machines, version)
		}
		return nil
	})
	return which
}

// claimedOnce checks on the hosts that each belongs to the Machine in its Host object, and that no Machine has two
// hosts.
func (p *pool) claimedOnce() {
	p.Helper()
	out, err := operator.OnEach(p.Context(), p.poolHosts(),
		"sed -n 's/^machine=//p' /etc/kubeone/marker 2>/dev/null || :")
	p.must(err)
	seen := map[string]string{}
	for _, h := range p.listHosts() {
		want := ""
		if c := h.Status.Claim; c != nil {
			want = c.Namespace + "/" + c.Name
		}
		is := strings.TrimSpace(out[h.Name])
		p.checkEqual("whose "+h.Name+" is, by its own note", want, is)
		if other := seen[is]; is != "" && other != "" {
			p.Errorf("Machine %s has %s and %s", is, other, h.Name)
		}
		seen[is] = h.Name
	}
}

// awaitFree waits until a host of the pool is free and in its former state.
func (p *pool) awaitFree(h *fleet.Host) {
	p.Helper()
	p.eventually(h.Hostname+" is free", 4*time.Minute, func(ctx context.Context) error {
		is := &kubeone.Host{}
		if err := p.Get(ctx, client.ObjectKey{Name: h.Hostname}, is); err != nil {
			return err
		}
		if is.Status.State != kubeone.HostFree || is.Status.Claim != nil {
			return fmt.Errorf("it is %s: %s", is.Status.State, is.Status.Message)
		}
		return nil
	})
	nodes, err := p.Kube(p.Context(), "get", "nodes", "-o", "name")
	p.must(err)
	if strings.Contains(nodes, "node/"+h.Hostname+"\n") {
		p.Errorf("its Node is there: %s", nodes)
	}
	if !p.booted[h.Hostname] {
		p.checkUnchanged(map[string][]string{h.Hostname: p.bare[h.Hostname]}, p.snapshotOf(h))
	}
}

// scaleDownAndUp scales down to one and up to three.
func (p *pool) scaleDownAndUp() {
	before := p.hostsByMachine()
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "1")
	p.awaitReady(1, newest, 6*time.Minute)
	left := p.hostsByMachine()
	for name, host := range before {
		if _, stays := left[name]; !stays {
			p.awaitFree(p.Lab.Host(host))
		}
	}
	p.runKubectl("-n", "kube-system", "scale", "machinedeployment", "lab", "--replicas", "3")
	p.awaitReady(3, newest, 6*time.Minute)
	p.claimedOnce()
}

// killHosts kills a host: its Machine is replaced, and the host is not free. Then it kills two of three hosts at once:
// no Machine is replaced or deleted, and both hosts return.
func (p *pool) killHosts() {
	p.runKubectl("-n", "kube-system", "patch", "machinedeployment", "lab", "--type", "merge", "-p",
		`{"spec":{"healthCheck":{"notReadyTimeoutSeconds":60,"maxUnhealthy":1}}}`)
	before := p.hostsByMachine()
	first := slices.Min(slices.Collect(maps.Keys(before)))
	dead := p.Lab.Host(before[first])
	p.must(dead.Kill(p.Context()))
	began := time.Now()
	p.eventually("its Machine is being replaced", 6*time.Minute, func(ctx context.Context) error {
		all, err := p.listMachines(ctx)
		if err != nil {
			return err
		}
		alive := 0
		for _, m := range all {
			if m.Name != first && p.checkMachine(ctx, m, newest) == nil {
				alive++
			}
		}
		if alive != 3 {
			return fmt.Errorf("%d of %d Machines run", alive, len(all))
		}
		return nil
	})
	p.Logf("%5.1f s  from the death of %s until three Machines run again", time.Since(began).Seconds(), dead.Hostname)
	p.bringHostBack(dead)
	p.awaitFree(dead)
	p.awaitReady(3, newest, 2*time.Minute)

	had := p.hostsByMachine()
	names := slices.Sorted(maps.Keys(had))
	lost, kept := names[:2], names[2]
	for _, name := range lost {
		p.must(p.Lab.Host(had[name]).Kill(p.Context()))
	}
	p.eventually("the brake holds", 6*time.Minute, func(ctx context.Context) error {
		d := &v1alpha1.MachineDeployment{}
		if err := p.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "lab"}, d); err != nil {
			return err
		}
		held := meta.FindStatusCondition(d.Status.Conditions, controllers.ConditionRemediationHeld)
		if held == nil || held.Status != metav1.ConditionTrue || !strings.HasPrefix(held.Message, "2 Machines") {
			return fmt.Errorf("it says %+v", held)
		}
		return p.brokenFor(ctx, lost, time.Minute)
	})
	all, err := p.listMachines(p.Context())
	p.must(err)
	for _, m := range all {
		if m.DeletionTimestamp != nil {
			p.Errorf("%s is deleted", m.Name)
		} else if m.Name == kept {
			p.must(p.checkMachine(p.Context(), m, newest))
		}
	}
	p.checkEqual("which Machine has which host", had, p.hostsByMachine())
	// The hosts return one after the other. Without the limit, the last one would be replaced as the only silent one.
	p.runKubectl("-n", "kube-system", "patch", "machinedeployment", "lab", "--type", "merge", "-p",
		`{"spec":{"healthCheck":{"maxUnhealthy":0}}}`)
	for _, name := range lost {
		p.bringHostBack(p.Lab.Host(had[name]))
	}
	p.awaitReady(3, newest, 5*time.Minute)
	p.checkEqual("which Machine has which host", had, p.hostsByMachine())
	p.claimedOnce()
}

// brokenFor returns an error unless each of the Machines has been unready for longer than the limit.
func (p *pool) brokenFor(ctx context.Context, names []string, limit time.Duration) error {
	all, err := p.listMachines(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		ready := meta.FindStatusCondition(m.Status.Conditions, machine.ConditionReady)
		if slices.Contains(names, m.Name) && (ready == nil || ready.Status == metav1.ConditionTrue ||
			time.Since(ready.LastTransitionTime.Time) <= limit+5*time.Second) {
			return fmt.Errorf("%s: %+v", m.Name, ready)
		}
	}
	return nil
}

// bringHostBack starts a killed host. Like some real machines, it rewrites its authorized_keys at boot, so that the key
// must be added again.
func (p *pool) bringHostBack(h *fleet.Host) {
	p.Helper()
	p.must(h.Start(p.Context()))
	p.booted[h.Hostname] = true
	add := []string{"host", "add", "-y", "--key-file", p.Lab.Path("id_ed25519"), "--kubeconfig", p.kubeconfigPath()}
	p.runCommand(0, slices.Concat(add, []string{"ops@" + h.Address}), "already in the pool", "Added "+h.Hostname)
}

// orphanHost removes a Machine's finalizer, as if a restored etcd had never seen it. Its host is returned all the same,
// and the deployment creates another Machine.
func (p *pool) orphanHost() {
	name, host := "", ""
	for name, host = range p.hostsByMachine() {
		break
	}
	m := &v1alpha1.Machine{}
	p.must(p.Get(p.Context(), client.ObjectKey{Namespace: "kube-system", Name: name}, m))
	before := m.DeepCopy()
	m.Finalizers, m.Annotations = nil, map[string]string{v1alpha1.PausedAnnotation: ""}
	p.must(p.Patch(p.Context(), m, client.MergeFrom(before)))
	p.must(client.IgnoreNotFound(p.Delete(p.Context(), m)))
	p.eventually(host+" is returned or taken again", 4*time.Minute, func(ctx context.Context) error {
		is := &kubeone.Host{}
		if err := p.Get(ctx, client.ObjectKey{Name: host}, is); err != nil {
			return err
		}
		if c := is.Status.Claim; c != nil && c.Name == name {
			return fmt.Errorf("it is %s: %s", is.Status.State, is.Status.Message)
		}
		return nil
	})
	p.awaitReady(3, newest, 5*time.Minute)
	p.claimedOnce()
}

// emptyPool removes the hosts from the pool. A host with a Machine is refused, and the others lose their key.
func (p *pool) emptyPool() {
	remove := []string{"host", "remove", "--kubeconfig", p.kubeconfigPath()}
	for name, host := range p.hostsByMachine() {
		p.runCommand(15, slices.Concat(remove, []string{host}), "Machine kube-system/"+name+" uses Host "+host)
	}
	p.runKubectl("-n", "kube-system", "delete", "machinedeployment", "lab")
	var names []string
	for _, h := range p.poolHosts() {
		p.awaitFree(h)
		names = append(names, h.Hostname)
	}
	gone := p.poolHosts()[0]
	p.must(gone.Kill(p.Context()))
	p.runCommand(14, slices.Concat(remove, names[:1]), "key could not be removed from the host", "--force")
	p.runCommand(0, append(remove, "--force", gone.Hostname), "the cluster SSH key is still on "+gone.Hostname)
	p.runCommand(0, slices.Concat(remove, names[1:]), "Removed "+names[1])
	keys, err := operator.OnEach(p.Context(), p.poolHosts()[1:], "cat ~ops/.ssh/authorized_keys")
	p.must(err)
	for host, text := range keys {
		if strings.Contains(text, "kubeone-pool") || !strings.Contains(text, "ssh-") {
			p.Errorf("%s lets in:\n%s", host, text)
		}
	}
	for _, c := range p.running {
		if err := c.Stop(); err != nil {
			p.Error(err)
		}
	}
	p.running = nil
	p.nothingToDo()
}

// endCluster resets the cluster while it has Machines. Without controllers the command refuses and changes nothing.
func (p *pool) endCluster() {
	hosts := p.poolHosts()[1:4]
	for _, h := range hosts {
		p.runCommand(0, []string{"host", "add", "-y", "--key-file", p.Lab.Path("id_ed25519"), "--kubeconfig",
			p.kubeconfigPath(),
			"--labels", "pool=lab", "ops@" + h.Address}, "Added "+h.Hostname)
	}
	p.startControllers("controller")
	path := filepath.Join(p.Dir, "deployment.yaml")
	p.must(os.WriteFile(path, fmt.Appendf(nil, deployment, newest), 0o600))
	p.runKubectl("apply", "-f", path)
	p.awaitReady(3, newest, 6*time.Minute)
	p.eventually("the cluster is healthy with its Machines", time.Minute, func(ctx context.Context) error {
		r := p.Run(ctx, "status")
		if r.Status != 0 || !strings.Contains(r.Text(), "3 Machines, Kubernetes ") {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	p.runCommand(15, []string{"node", "remove", "-y", hosts[0].Hostname},
		"which is the host of Machine kube-system/lab-")

	p.must(p.running[0].Stop())
	p.running = nil
	p.runCommand(15, []string{"reset", "-y"}, "kubeone controller has not been active",
		hosts[0].Hostname)
	p.runCommand(2, []string{"reset", "--abandon-machines", "--dry-run"}, "stay as they are", hosts[2].Hostname)
	p.awaitReady(3, newest, time.Minute)

	p.startControllers("controller")
	p.eventually("the controllers are heard of", time.Minute, func(ctx context.Context) error {
		if r := p.Run(ctx, "reset", "--dry-run"); r.Status != 2 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	p.runCommand(0, []string{"reset", "-y"}, "wait until the hosts in the pool are free", "Done. The hosts are bare.")
	for _, h := range hosts {
		if !p.booted[h.Hostname] {
			p.checkUnchanged(map[string][]string{h.Hostname: p.bare[h.Hostname]}, p.snapshotOf(h))
		}
	}
	p.running[0].Kill() // its API no longer exists
	p.running = nil
}
