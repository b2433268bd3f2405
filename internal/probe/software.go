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

// parseSoftware adds programs, units and static pods to h.
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

// binaryVersions returns the version of each program, at most maxValues. For our programs the version is in the target
// of their link (/opt/kubeone/NAME/VERSION/...), for others in their output.
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

// versionIn returns the version in the output of a program, or "" if there is none.
func versionIn(said string) string {
	if m := versionPattern().FindStringSubmatch(said); m != nil {
		return m[1]
	}
	return ""
}

// imageTag returns the tag in an image name, without the leading v.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(tag, "v")
}

// parseUnits returns the properties of each unit by its Id. The output of systemctl show contains a block of key=value
// lines for each unit, separated by empty lines.
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

// parseUnit returns the facts about one unit. If systemd did not answer, all fields are zero.
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

// parseHealth parses the health of each component, "NAME STATUS". It ignores answers from processes of users other than
// root, unless the static pod of the component runs as that user.
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

// parseBefore adds settings to h that were on the host before kubeone and affect the kubelet or pods: swap, CNI files,
// cgroups, and another Kubernetes.
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

// parseAllowed reports whether the kubelet is allowed to start with swap and with cgroup v1. The last line overrides
// all others. The cgroup setting in the kubelet configuration is ignored, because kubeadm rewrites it in an upgrade.
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

// otherKubernetes returns the units of other Kubernetes distributions that are running or start at boot.
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

// candidate is a control-plane host through which the API or etcd can be reached.
type candidate struct {
	target Target
	answer Answer
}

// patience is how long one attempt runs alone before the next candidate is tried in parallel.
const patience = time.Second

// attempts describes how to try candidates: the timeout of each try, the health that the host itself reports, and the
// function to call.
type attempts[T any] struct {
	within time.Duration
	health func(candidate) observed.Tri
	try    func(context.Context, candidate) (T, error)
	// final reports whether a successful result ends the search. Other successful results are used only if there is no
	// final one. Nil means that all are final.
	final func(T) bool
}

// outcome is the result of one attempt.
type outcome[T any] struct {
	result T
	err    error
}

// firstOf tries candidates as they arrive until one succeeds. It starts the next attempt when one has failed, is slow,
// or had no final result. It returns Yes and the first result if one succeeds, No and all errors if every candidate
// fails, and Unknown if there are no candidates. When it returns, no attempt is running.
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

// startBest starts an attempt with the best candidate and returns the others.
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

// bestCandidate returns the index of the first candidate that reports that it is healthy. If there is none, it returns
// the first whose health is unknown, and otherwise 0.
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

// addArrived adds all candidates that can be received without waiting. It returns nil as the channel once that is
// closed.
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

// addReceived adds a received candidate. If the channel was closed, it returns nil as the channel instead.
func addReceived(c candidate, open bool, from <-chan candidate, waiting []candidate) ([]candidate, <-chan candidate) {
	if !open {
		return waiting, nil
	}
	return append(waiting, c), from
}
