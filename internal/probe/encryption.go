package probe

import (
	"context"
	_ "embed" // the script
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"kubeone/internal/cluster/nodes"
	"kubeone/internal/componentconfig/settings"
	"kubeone/internal/host"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// encryptionDir contains our configurations of encryption at rest.
const encryptionDir = "/etc/kubernetes/encryption/"

// no is the script's output if there is no configuration.
const no = "none"

var (
	// encryptionPath matches the path of any configuration.
	encryptionPath = pattern.Lazy(`^/[0-9A-Za-z._/-]{1,200}$`)
	// encryptionFile matches the path of one of our configurations and the digest of the file.
	encryptionFile = pattern.Lazy(`^/etc/kubernetes/encryption/([0-9a-f]{64})\.yaml ([0-9a-f]{64})  -$`)
	// encryptionKey matches the path of one of our configurations, the name of a key in it, and the digest of the key.
	encryptionKey = pattern.Lazy(
		`^/etc/kubernetes/encryption/([0-9a-f]{64})\.yaml (identity|[a-z0-9][a-z0-9.-]{0,62}) (-|[0-9a-f]{64}  -)$`)
)

const (
	maxConfigurations = 16
	maxKeys           = 16 // in one configuration
)

// parseEncryption returns how the API server on the host encrypts Secrets, or nil if the host does not report it.
func parseEncryption(l lines) *observed.Encryption {
	next := l.firstValue("encryption-next")
	if next == "" {
		return nil
	}
	files := encryptionFiles(l)
	var out observed.Encryption
	for _, name := range append([]string{next, l.firstValue("encryption-manifest")}, l["encryption-running"]...) {
		if isForeignPath(name) {
			out.Foreign = name
			return &out
		}
	}
	config := func(name string) (c observed.EncryptionConfig, found bool) {
		if name == no || name == "" {
			return observed.EncryptionConfig{}, true
		}
		c.Digest = strings.TrimSuffix(path.Base(name), ".yaml")
		c.Providers = files[c.Digest]
		return c, len(c.Providers) > 0
	}
	out.Next, _ = config(next)
	_, nextFound := config(next)
	_, manifestFound := config(l.firstValue("encryption-manifest"))
	out.Lost = !nextFound || !manifestFound
	for _, name := range l["encryption-running"] {
		c, _ := config(name)
		sameDigest := func(have observed.EncryptionConfig) bool { return have.Digest == c.Digest }
		if len(out.Running) < maxConfigurations && !slices.ContainsFunc(out.Running, sameDigest) {
			out.Running = append(out.Running, c)
		}
	}
	return &out
}

// isForeignPath reports whether the path is invalid or not that of one of our configurations.
func isForeignPath(name string) bool {
	if name == no || name == "" {
		return false
	}
	digest, ours := strings.CutPrefix(name, encryptionDir)
	return !ours || !encryptionPath().MatchString(name) || len(strings.TrimSuffix(digest, ".yaml")) != 64
}

// encryptionFiles returns the providers of each of our configurations, by digest. It leaves out files whose content
// does not match the digest in their name.
func encryptionFiles(l lines) map[string][]observed.EncryptedBy {
	matching := map[string]bool{}
	for _, text := range l["encryption-file"] {
		m := encryptionFile().FindStringSubmatch(text)
		if len(m) == 0 || len(matching) == maxConfigurations {
			continue
		}
		if m[1] == m[2] {
			matching[m[1]] = true
		}
	}
	out := map[string][]observed.EncryptedBy{}
	for _, text := range l["encryption-key"] {
		m := encryptionKey().FindStringSubmatch(text)
		if len(m) == 0 {
			continue
		}
		if !matching[m[1]] || len(out[m[1]]) == maxKeys {
			continue
		}
		key, _, _ := strings.Cut(m[3], " ")
		if key == "-" {
			key = ""
		}
		out[m[1]] = append(out[m[1]], observed.EncryptedBy{Name: m[2], Key: key})
	}
	return out
}

// newNode returns the facts about a Node. It limits strings that the API does not check, because a kubelet can write
// anything to its own Node.
func newNode(n corev1.Node) observed.Node {
	_, controlPlane := n.Labels[nodes.ControlPlaneLabel]
	out := observed.Node{
		Name: boundText(n.Name), Unschedulable: n.Spec.Unschedulable, ControlPlane: controlPlane,
		KubeletVersion: strings.TrimPrefix(boundText(n.Status.NodeInfo.KubeletVersion), "v"),
		Runtime:        boundText(n.Status.NodeInfo.ContainerRuntimeVersion),
		MachineID:      boundText(n.Status.NodeInfo.MachineID),
		Labels:         n.Labels, Annotations: maps.Clone(n.Annotations),
	}
	for key, value := range out.Annotations {
		out.Annotations[key] = host.Printable(value)
	}
	for _, a := range n.Status.Addresses {
		out.Addresses = append(out.Addresses, boundText(a.Address))
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = newTri(c.Status)
		}
	}
	for _, t := range n.Spec.Taints {
		out.Taints = append(out.Taints, observed.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

func newTri(s corev1.ConditionStatus) observed.Tri {
	switch s {
	case corev1.ConditionTrue:
		return observed.Yes
	case corev1.ConditionFalse:
		return observed.No
	}
	return observed.Unknown
}

// newPod returns the facts about a pod. Of a static pod it keeps only the label "component", which kubeadm sets. A
// faulty kubelet could use other labels to make the pod look like part of a DaemonSet or Deployment.
func newPod(p corev1.Pod) observed.Pod {
	out := observed.Pod{Namespace: p.Namespace, Name: p.Name, Node: boundText(p.Spec.NodeName), Ready: observed.No}
	labels := []string{"k8s-app", "component", "app"}
	if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		labels = labels[1:2]
	}
	for _, label := range labels {
		if out.App == "" {
			out.App = p.Labels[label]
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready = newTri(c.Status)
		}
	}
	if ip, err := netip.ParseAddr(p.Status.PodIP); err == nil && !p.Spec.HostNetwork {
		out.Address = ip.WithZone("").String()
	}
	for _, s := range p.Status.ContainerStatuses {
		out.Restarts += int(s.RestartCount)
	}
	if len(p.Spec.Containers) > 0 {
		out.Image = boundText(p.Spec.Containers[0].Image)
	}
	return out
}

// newLock returns the lock in our Lease, or nil if it is free. now is the time on the operator's machine.
func newLock(l *coordinationv1.Lease, now time.Time) *observed.Lock {
	holder, since, live := leaselock.State(l, now)
	if holder.Name == "" {
		return nil
	}
	lock := &observed.Lock{Holder: holder.Name, RunID: holder.RunID, Since: since.UTC(), Live: live}
	if l.Spec.LeaseTransitions != nil {
		lock.Generation = int64(*l.Spec.LeaseTransitions)
	}
	return lock
}

//go:embed settings.sh
var settingsScript string

const (
	settingsTimeout = 20 * time.Second
	maxSettingBytes = 4 << 10 // bytes of a line
)

// Settings reads files of a host by path or pattern, and the originals that the host keeps. It changes nothing and
// never fails; the result says why something was not read. The content may include secrets of the host.
func Settings(ctx context.Context, h Host, paths, kept []string) settings.Live {
	said := &answerText{begin: func() {}}
	_, err := h.Run(ctx, host.Cmd{
		Name: "read settings", Script: settingsScript, Timeout: settingsTimeout, Stdout: said,
		Args:   []string{strings.Join(slices.Concat(paths, kept), " "), strings.Join(kept, " ")},
		Stderr: &unread{left: maxTextBytes},
	})
	if err != nil {
		return settings.Live{Failed: errorReason(err)}
	}
	return readSettings(string(said.text), slices.Concat(paths, kept))
}

// readSettings returns the requested files in an answer, with only their printable text.
func readSettings(out string, asked []string) settings.Live {
	r := settingsReader{asked: asked, live: settings.Live{
		Texts: map[string]string{}, Kept: map[string]string{}, Cut: map[string]bool{},
	}}
	begun, ended := false, false
	for line := range strings.Lines(out) {
		switch line = strings.TrimRight(line, "\r\n"); {
		case !begun:
			begun = line == "kubeone-settings\t1"
		case line == "end\t1":
			ended = true
		case !ended:
			r.readLine(line)
		}
	}
	switch {
	case !begun:
		return settings.Live{Failed: "its output has an unknown format"}
	case !ended:
		return settings.Live{Failed: "its output is truncated"}
	}
	return r.live
}

// settingsReader parses an answer line by line.
type settingsReader struct {
	asked []string
	live  settings.Live
	into  map[string]string // destination of the lines; nil: not requested
	of    string            // path of the current file
}

func (r *settingsReader) readLine(line string) {
	if text, ok := strings.CutPrefix(line, "="); ok {
		if r.into != nil {
			r.into[r.of] += host.Printable(text[:min(len(text), maxSettingBytes)]) + "\n"
		}
		return
	}
	name, path, _ := strings.Cut(line, "\t")
	r.into, r.of = nil, path
	if len(r.live.Texts)+len(r.live.Kept) >= maxValues ||
		!slices.ContainsFunc(r.asked, func(pattern string) bool { return matchesPath(pattern, path) }) {
		return
	}
	switch name {
	case "text":
		r.into = r.live.Texts
	case "kept":
		r.into = r.live.Kept
	case "cut":
		r.live.Cut[path] = true
	}
	if r.into != nil {
		r.into[path] = ""
	}
}

// matchesPath reports whether a path matches the pattern and is clean, printable and of limited length.
func matchesPath(pattern, file string) bool {
	ok, err := path.Match(pattern, file)
	return ok && err == nil && len(file) <= maxLineBytes && path.Clean(file) == file && host.Printable(file) == file &&
		!strings.Contains(file, "\t")
}
