package probe

import (
	"context"
	"errors"
	"fmt"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// parseSoftware fills in programs, units and static pods.
func parseSoftware(h *observed.Host, l lines) {
	h.Binaries = binaryVersions(l)
	units := parseUnits(l["unit"])
	h.Containerd = parseUnit(units["containerd.service"], h.Binaries["containerd"])
	h.Kubelet = parseUnit(units["kubelet.service"], h.Binaries["kubelet"])
	h.Manifests = staticPods(l)
	text := l.pathLines("yaml")
	version := func(pod string) string {
		return imageTag(yamlValue(text["/etc/kubernetes/manifests/"+pod+".yaml"], "image"))
	}
	h.APIServerVersion = version("kube-apiserver")
	h.ControllerManagerVersion, h.SchedulerVersion = version("kube-controller-manager"), version("kube-scheduler")
	parseHealth(h, l)
}

// staticPods returns the names of static pods, sorted, at most maxValues.
func staticPods(l lines) []string {
	var out []string
	for _, m := range l["manifest"] {
		if name := validWord(strings.TrimSuffix(path.Base(m), path.Ext(m))); name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), maxValues)]
}

// binaryVersions returns the version of each program, at most maxValues. For ours it comes from the link's target
// (/opt/kubeone/NAME/VERSION/...), for others from their output.
func binaryVersions(l lines) map[string]string {
	out := map[string]string{}
	note := func(name, version string) {
		if name = validWord(name); name != "" && version != "" && len(out) < maxValues {
			out[name] = version
		}
	}
	// lrwxrwxrwx 1 root root 34 Nov 21 01:00 kubelet -> /opt/kubeone/kubelet/1.36.3/kubelet
	for _, v := range l["link"] {
		link, target, ok := strings.Cut(v, " -> ")
		name := link[strings.LastIndex(link, " ")+1:]
		parts := strings.Split(strings.TrimPrefix(target, "/opt/kubeone/"), "/")
		if !ok || len(parts) < 3 || target == parts[0] || l.hasValue("broken", "/opt/kubeone/bin/"+name) {
			continue
		}
		note(name, strings.TrimPrefix(parts[1], "v"))
	}
	for _, v := range l["version"] {
		name, said, _ := strings.Cut(v, " ")
		note(name, versionIn(said))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

var versionPattern = pattern.Lazy(`\bv?(\d+\.\d+\.\d+[0-9A-Za-z.+-]*)`)

// versionIn finds the version in a program's output.
func versionIn(said string) string {
	if m := versionPattern().FindStringSubmatch(said); m != nil {
		return m[1]
	}
	return ""
}

// imageTag returns the tag of an image's name, without v.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(tag, "v")
}

// parseUnits splits the output of systemctl show, blocks of key=value between empty lines, by Id.
func parseUnits(text []string) map[string]map[string]string {
	out := map[string]map[string]string{}
	block := map[string]string{}
	for _, t := range append(slices.Clone(text), "") {
		key, value, ok := strings.Cut(t, "=")
		if ok {
			block[key] = value
			continue
		}
		if t == "" && block["Id"] != "" {
			out[block["Id"]] = block
			block = map[string]string{}
		}
	}
	return out
}

// parseUnit parses one unit's block. If systemd did not answer, all fields are zero, including State.
func parseUnit(show map[string]string, version string) observed.Unit {
	if show == nil {
		return observed.Unit{}
	}
	u := observed.Unit{
		Installed: show["LoadState"] == "loaded",
		Enabled:   slices.Contains([]string{"enabled", "enabled-runtime", "alias"}, show["UnitFileState"]),
		Active:    show["ActiveState"] == "active",
		State:     show["ActiveState"] + "/" + show["SubState"],
	}
	if u.Installed {
		u.Version = version
	}
	if since := show["ActiveEnterTimestampMonotonic"]; since != "0" {
		u.Since = since
	}
	return u
}

// parseHealth parses each component's answer, "NAME STATUS". It ignores an answer from a process of a user other than
// root, unless the component's static pod runs as that user.
func parseHealth(h *observed.Host, l lines) {
	of := map[string]struct {
		fact *observed.Tri
		port int
	}{
		"kubelet": {&h.Healthz, 10248}, "apiserver": {&h.APIServer, parseNumber(l.firstValue("api-port"))},
		"etcd":               {&h.EtcdHealth, 2381},
		"controller-manager": {&h.ControllerManager, 10257}, "scheduler": {&h.Scheduler, 10259},
	}
	listening := parseSockets(l)
	for _, v := range l["health"] {
		name, status, _ := strings.Cut(v, " ")
		c, known := of[name]
		if !known {
			continue
		}
		*c.fact = isHealthyStatus(strings.TrimSpace(status))
		user := answeringUser(listening, c.port)
		if meant := name + " " + strconv.Itoa(user); user != 0 && !slices.Contains(l["runs-as"], meant) {
			*c.fact = observed.No
			who := observed.Port{Number: c.port, Process: name, User: user}
			h.Impostors = append(slices.DeleteFunc(h.Impostors, func(p observed.Port) bool { return p == who }), who)
		}
	}
}

// isHealthyStatus interprets an HTTP status: 000 means no listener; without permission the health is unknown.
func isHealthyStatus(status string) observed.Tri {
	switch {
	case len(status) != 3, status == "401", status == "403", status == "404":
		return observed.Unknown
	case status == "200":
		return observed.Yes
	}
	return observed.No
}

// swapName matches the path of a device or file used as swap.
var swapName = pattern.Lazy(`^/[0-9A-Za-z._/@+-]{1,160}$`)

// cniName matches the name of a file that container runtimes read as CNI configuration.
var cniName = pattern.Lazy(`^[0-9A-Za-z_][0-9A-Za-z._@+-]{0,127}\.(conf|conflist|json)$`)

// kubeletAllows matches a setting that lets the kubelet start where it otherwise refuses to.
var kubeletAllows = pattern.Lazy(`(failSwapOn|failCgroupV1)"?\s*:\s*(true|false)`)

const (
	maxSwaps    = 16
	maxCNIFiles = 32
)

// parseBefore fills in what was on the host before kubeone and matters to the kubelet and to pods.
func parseBefore(h *observed.Host, l lines) {
	for _, name := range l["swap"] {
		if swapName().MatchString(name) && len(h.Swaps) < maxSwaps {
			h.Swaps = append(h.Swaps, name)
		}
	}
	for _, name := range l["cni"] {
		if cniName().MatchString(name) && len(h.CNIFiles) < maxCNIFiles {
			h.CNIFiles = append(h.CNIFiles, name)
		}
	}
	slices.Sort(h.CNIFiles)
	h.CNIFiles = slices.Compact(h.CNIFiles)
	if n := parseNumber(l.firstValue("cgroups")); n == 1 || n == 2 {
		h.Cgroups = n
	}
	h.SwapAllowed, h.CgroupV1Allowed = parseAllowed(l["kubelet-allows"])
	h.OtherKubernetes = otherKubernetes(parseUnits(l["unit"]))
}

// parseAllowed returns whether the kubelet may start with swap and with cgroup v1: the last line overrides all others.
// The kubelet's own configuration of cgroups does not count, because kubeadm rewrites it in an upgrade.
func parseAllowed(settings []string) (swap, cgroupV1 bool) {
	for _, text := range settings {
		switch flag := strings.ReplaceAll(text, " ", "="); flag {
		case "--fail-swap-on=true", "--fail-swap-on=false":
			swap = flag == "--fail-swap-on=false"
		case "--fail-cgroupv1=true", "--fail-cgroupv1=false":
			cgroupV1 = flag == "--fail-cgroupv1=false"
		}
		file, setting, _ := strings.Cut(text, ":")
		for _, m := range kubeletAllows().FindAllStringSubmatch(setting, -1) {
			switch {
			case m[1] == "failSwapOn":
				swap = m[2] == "false"
			case file != "/var/lib/kubelet/config.yaml":
				cgroupV1 = m[2] == "false"
			}
		}
	}
	return swap, cgroupV1
}

// otherKubernetes returns the units in the probe script that belong to another Kubernetes and run or start at boot.
func otherKubernetes(units map[string]map[string]string) []string {
	var out []string
	for _, name := range []string{
		"crio.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service",
		"k0scontroller.service", "k0sworker.service", "snap.microk8s.daemon-kubelite.service",
		"snap.k8s.kubelet.service",
	} {
		switch unit := units[name]; {
		case unit["LoadState"] != "loaded":
		case unit["ActiveState"] != "inactive" && unit["ActiveState"] != "failed", unit["UnitFileState"] == "enabled":
			out = append(out, name)
		}
	}
	return out
}

// candidate is a control-plane host that leads to the cluster.
type candidate struct {
	target Target
	answer Answer
}

// patience is how long one attempt runs alone before the next candidate is tried in parallel.
const patience = time.Second

// attempts describes how to try candidates: the time for each, the host's view of the part in question, and the try.
type attempts[T any] struct {
	within time.Duration
	health func(candidate) observed.Tri
	try    func(context.Context, candidate) (T, error)
	// final reports whether a success ends the search. A success that is not final counts if there is no other. Nil:
	// all are final.
	final func(T) bool
}

// outcome is the result of one attempt.
type outcome[T any] struct {
	result T
	err    error
}

// firstOf tries candidates as they come until one succeeds. It starts the next when one has failed, is slow, or gave
// no final result. It returns Yes with the first success; No with all problems if every candidate failed; Unknown
// without candidates. All attempts have ended when it returns.
func (a attempts[T]) firstOf(ctx context.Context,
	from <-chan candidate) (result T, reached observed.Tri, problem error) {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome[T], cap(from)) // room for every candidate
	start := func(c candidate) { running.Go(func() { outcomes <- a.tryOnce(ctx, c) }) }
	late := time.NewTimer(patience)
	defer late.Stop()
	var waiting []candidate
	var problems []error
	ended := ctx.Done()
	trying, due := 0, false
	for {
		waiting, from = addArrived(from, waiting)
		if len(waiting) > 0 && (trying == 0 || due) {
			waiting = a.startBest(waiting, start)
			trying, due = trying+1, false
			late.Reset(patience)
		}
		if trying == 0 && from == nil {
			if reached == observed.Yes {
				problems = nil
			}
			return result, reached, errors.Join(problems...)
		}
		select {
		case c, open := <-from:
			waiting, from = addReceived(c, open, from, waiting)
		case o := <-outcomes:
			trying--
			switch {
			case o.err == nil && (a.final == nil || a.final(o.result)):
				return o.result, observed.Yes, nil
			case o.err == nil && reached != observed.Yes:
				result, reached = o.result, observed.Yes
			case o.err != nil && reached != observed.Yes:
				reached, problems = observed.No, append(problems, o.err)
			}
		case <-late.C:
			due = true
		case <-ended: // all attempts end with it
			ended, from, waiting = nil, nil, nil
		}
	}
}

// startBest starts the most promising attempt and returns the other candidates.
func (a attempts[T]) startBest(waiting []candidate, start func(candidate)) []candidate {
	i := a.bestCandidate(waiting)
	start(waiting[i])
	return slices.Delete(waiting, i, i+1)
}

func (a attempts[T]) tryOnce(ctx context.Context, c candidate) outcome[T] {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	result, err := a.try(ctx, c)
	if err != nil {
		err = fmt.Errorf("through %s: %w", c.target.ID, err)
	}
	return outcome[T]{result, err}
}

// bestCandidate returns the index of the first candidate that reports it is healthy, else of one that does not know,
// else 0.
func (a attempts[T]) bestCandidate(of []candidate) int {
	for _, wanted := range []observed.Tri{observed.Yes, observed.Unknown} {
		for i, c := range of {
			if a.health(c) == wanted {
				return i
			}
		}
	}
	return 0
}

// addArrived adds the candidates available now. The returned channel is nil once it is closed and empty.
func addArrived(from <-chan candidate, waiting []candidate) ([]candidate, <-chan candidate) {
	for from != nil {
		select {
		case c, open := <-from:
			waiting, from = addReceived(c, open, from, waiting)
		default:
			return waiting, from
		}
	}
	return waiting, nil
}

// addReceived returns the waiting candidates and the channel after one receive from it.
func addReceived(c candidate, open bool, from <-chan candidate, waiting []candidate) ([]candidate, <-chan candidate) {
	if !open {
		return waiting, nil
	}
	return append(waiting, c), from
}
