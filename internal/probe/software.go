package probe

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
)

// software fills in programs, units and static pods.
func software(h *observed.Host, l lines) {
	h.Binaries = binaries(l)
	units := units(l["unit"])
	h.Containerd = unit(units["containerd.service"], h.Binaries["containerd"])
	h.Kubelet = unit(units["kubelet.service"], h.Binaries["kubelet"])
	h.Manifests = manifests(l)
	text := l.pathLines("yaml")
	version := func(pod string) string {
		return imageTag(yamlValue(text["/etc/kubernetes/manifests/"+pod+".yaml"], "image"))
	}
	h.APIServerVersion = version("kube-apiserver")
	h.ControllerManagerVersion, h.SchedulerVersion = version("kube-controller-manager"), version("kube-scheduler")
	health(h, l)
}

// manifests are the names of static pods, sorted, and no more than mostValues.
func manifests(l lines) []string {
	var out []string
	for _, m := range l["manifest"] {
		if name := word(strings.TrimSuffix(path.Base(m), path.Ext(m))); name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), mostValues)]
}

// binaries is the version of each program, of mostValues at most: ours from the directory that its link points to
// (/opt/kubeone/NAME/VERSION/...), others from what they printed.
func binaries(l lines) map[string]string {
	out := map[string]string{}
	note := func(name, version string) {
		if name = word(name); name != "" && version != "" && len(out) < mostValues {
			out[name] = version
		}
	}
	// lrwxrwxrwx 1 root root 34 Nov 21 01:00 kubelet -> /opt/kubeone/kubelet/1.36.3/kubelet
	for _, v := range l["link"] {
		left, target, ok := strings.Cut(v, " -> ")
		name := left[strings.LastIndex(left, " ")+1:]
		parts := strings.Split(strings.TrimPrefix(target, "/opt/kubeone/"), "/")
		if !ok || len(parts) < 3 || target == parts[0] || l.has("broken", "/opt/kubeone/bin/"+name) {
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

// versionIn finds a version in what a program says about itself.
func versionIn(said string) string {
	if m := versionPattern().FindStringSubmatch(said); m != nil {
		return m[1]
	}
	return ""
}

// imageTag is the tag of an image's name, without v.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(tag, "v")
}

// units splits what systemctl show printed, blocks of key=value between empty lines, by Id.
func units(text []string) map[string]map[string]string {
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

// unit is one unit's block; all zero, State too, when systemd did not answer.
func unit(show map[string]string, version string) observed.Unit {
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

// health reads what each component said about itself: "NAME STATUS". What a process of another user than root says in
// its place is not believed, unless it is the one as which the component's static pod is to run.
func health(h *observed.Host, l lines) {
	of := map[string]struct {
		fact *observed.Tri
		port int
	}{
		"kubelet": {&h.Healthz, 10248}, "apiserver": {&h.APIServer, number(l.one("api-port"))},
		"etcd":               {&h.EtcdHealth, 2381},
		"controller-manager": {&h.ControllerManager, 10257}, "scheduler": {&h.Scheduler, 10259},
	}
	listening := sockets(l)
	for _, v := range l["health"] {
		name, status, _ := strings.Cut(v, " ")
		c, known := of[name]
		if !known {
			continue
		}
		*c.fact = healthy(strings.TrimSpace(status))
		user := answering(listening, c.port)
		if meant := name + " " + strconv.Itoa(user); user != 0 && !slices.Contains(l["runs-as"], meant) {
			*c.fact = observed.No
			who := observed.Port{Number: c.port, Process: name, User: user}
			h.Impostors = append(slices.DeleteFunc(h.Impostors, func(p observed.Port) bool { return p == who }), who)
		}
	}
}

// healthy is what an HTTP status says: 000 is nobody there; who may not ask does not know.
func healthy(status string) observed.Tri {
	switch {
	case len(status) != 3, status == "401", status == "403", status == "404":
		return observed.Unknown
	case status == "200":
		return observed.Yes
	}
	return observed.No
}
