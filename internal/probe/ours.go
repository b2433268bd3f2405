package probe

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
)

const (
	markerFile  = "/etc/kubeone/marker"
	digestsFile = "/etc/kubeone/digests"
	upgradeFile = "/var/lib/kubeone/upgrading"
	imageNote   = "/var/lib/kubeone/controller-image"
	lockFile    = "/var/lib/kubeone/lock/owner"
	stepFile    = "/var/lib/kubeone/step/current"
	stepUnit    = "kubeone-step.service"

	// lockLive is the maximum age of a lock's beat for its holder to count as alive.
	lockLive = 30 * time.Second
)

// parseOurs adds to h what kubeone has left on the host: marker, lock, running step, digests, and files.
func parseOurs(h *observed.Host, l lines, files map[string][]string) {
	h.Marker = parseMarker(l, files)
	h.Digests = parseDigests(files[digestsFile])
	h.StoppedTimers = stoppedTimers(h.Digests, parseUnits(l["unit"]))
	if turn := files[upgradeFile]; len(turn) > 0 && versionNoted().MatchString(turn[0]) {
		h.Upgrading = turn[0]
	}
	h.ControllerFiles = controllerFiles(l["bundle"], files[imageNote])
	h.Edited = parseEdited(l["edited"])
	h.Encryption = parseEncryption(l)
	h.Restorable = parseRestorable(l["restorable"], h.Edited)
	h.PodEdits = parsePodEdits(l["pod-edit"], h.Edited)
	h.Exposed = parseExposed(l["exposed"], len(l["runs-as"]) > 0)
	h.HooksOwed = pendingHooks(l["hooks"])
	h.Lock = parseLock(l, files)
	h.Step = parseStep(l, files)
	for _, path := range l["kept"] {
		if len(h.Kept) < maxKept && keptPath().MatchString(path) {
			h.Kept = append(h.Kept, path)
		}
	}
}

// stoppedTimers returns the addons that the host has noted, and whose timer systemd does not run or would not start
// with the host.
func stoppedTimers(noted map[string]string, units map[string]map[string]string) []string {
	var out []string
	for _, name := range desired.HostAddons() {
		timer := parseUnit(units["kubeone-"+name+".timer"], "")
		if noted[name] != "" && timer.Known() && !(timer.Active && timer.Enabled) {
			out = append(out, name)
		}
	}
	return out
}

// pendingHooks returns the activities with pending hooks that a host recorded, without duplicates.
func pendingHooks(noted []string) []string {
	var out []string
	for _, activity := range []desired.Activity{
		desired.Installing, desired.Joining, desired.Upgrading, desired.Reconfiguring,
	} {
		if slices.Contains(noted, string(activity)) {
			out = append(out, string(activity))
		}
	}
	return out
}

// versionNoted matches the Kubernetes version of an upgrade in progress.
var versionNoted = pattern.Lazy(`^[0-9]{1,3}\.[0-9]{1,4}\.[0-9]{1,4}$`)

// bundlePath matches the size and path of one of our bundles.
var bundlePath = pattern.Lazy(`^([0-9]{1,15}) /var/lib/kubeone/bundles/(kubeone-[0-9A-Za-z.+_-]{1,128}\.tar)$`)

// imageNoted matches the name and digest of the controller image.
var imageNoted = pattern.Lazy(`^kubeone\.k8c\.io/[0-9A-Za-z._:-]{1,128} sha256:[0-9a-f]{64}$`)

const maxBundles = 64

// controllerFiles returns the bundles and the image on the host that the controllers use.
func controllerFiles(bundles, note []string) observed.ControllerFiles {
	var out observed.ControllerFiles
	if len(note) > 0 && imageNoted().MatchString(note[0]) {
		out.Image = note[0]
	}
	for _, text := range bundles {
		m := bundlePath().FindStringSubmatch(text)
		if m == nil || len(out.Bundles) == maxBundles {
			continue
		}
		if out.Bundles == nil {
			out.Bundles = map[string]int64{}
		}
		out.Bundles[m[2]], _ = strconv.ParseInt(m[1], 10, 64) // at most 15 digits
	}
	return out
}

// keptPath matches the directory of kept data. Paths that do not match are not shown, because a host can print
// anything.
var keptPath = pattern.Lazy(`^/(var/lib/kubeone-old|var/lib/etcd|etc/kubernetes)/[0-9A-Za-z.-]{1,64}$`)

const maxKept = 64

// editedPath matches the path of one of our files.
var editedPath = pattern.Lazy(`^(/(etc|var/lib)/[0-9A-Za-z._/:@-]{1,160}): FAILED( open or read)?$`)

const maxEdited = 32

// parseEdited parses lines "path: FAILED".
func parseEdited(text []string) []string {
	var out []string
	for _, t := range text {
		if m := editedPath().FindStringSubmatch(t); m != nil && len(out) < maxEdited {
			out = append(out, m[1])
		}
	}
	return out
}

// parseRestorable returns the edited files that can be restored, because a copy of the original is on the host.
func parseRestorable(paths, edited []string) []string {
	var out []string
	for _, path := range edited {
		if slices.Contains(paths, path) {
			out = append(out, path)
		}
	}
	return out
}

// exposedFile matches mode, owner and path of a file with keys.
var exposedFile = pattern.Lazy(`^([0-7]{1,4}) ([0-9]{1,9}) (` + strings.Join([]string{
	`/etc/kubernetes/(admin|super-admin|kubelet|bootstrap-kubelet|controller-manager|scheduler)\.conf`,
	`/etc/kubernetes/pki/(etcd/)?[0-9A-Za-z-][0-9A-Za-z.-]{0,63}\.key`,
	`/etc/kubernetes/(encryption|kubeone)/[0-9A-Za-z-][0-9A-Za-z._-]{0,127}`,
	`/var/lib/kubelet/pki/[0-9A-Za-z-][0-9A-Za-z._-]{0,63}\.(pem|key)`,
	`/etc/containerd/conf\.d/kubeone-registry-[0-9A-Za-z._:%-]{1,160}\.toml`,
}, "|") + `)$`)

const maxExposed = 32

// parseExposed returns the files with keys that users other than root can access. If components run as their own users,
// it ignores all files in /etc/kubernetes, because those users own some of them.
func parseExposed(said []string, ownUsers bool) []observed.FileAccess {
	var out []observed.FileAccess
	for _, text := range said {
		m := exposedFile().FindStringSubmatch(text)
		if m == nil || len(out) == maxExposed || ownUsers && strings.HasPrefix(m[3], "/etc/kubernetes/") {
			continue
		}
		mode, _ := strconv.ParseUint(m[1], 8, 16) // at most four digits
		user, _ := strconv.Atoi(m[2])             // at most nine
		if mode&0o077 != 0 || user != 0 {
			out = append(out, observed.FileAccess{Path: m[3], Mode: m[1], User: user})
		}
	}
	return out
}

// podEdit matches a difference in a static pod: the file of the pod, and a flag, a field, a mount or an image.
var podEdit = pattern.Lazy(
	`^/etc/kubernetes/manifests/[^ ]+ ([0-9A-Za-z-]{1,160}|[A-Za-z]{1,16}: *[0-9A-Za-z._/:@-]{1,160})$`)

const maxPodEdits = 16

// parsePodEdits returns the differences in the edited files that are static pods.
func parsePodEdits(text, edited []string) map[string][]string {
	var out map[string][]string
	for _, t := range text {
		path, what, _ := strings.Cut(t, " ")
		if !podEdit().MatchString(t) || !slices.Contains(edited, path) || len(out[path]) >= maxPodEdits {
			continue
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[path] = append(out[path], what)
	}
	return out
}

// parseMarker returns our marker, or nil if there is none. A marker without content is returned with an empty cluster.
func parseMarker(l lines, files map[string][]string) *observed.Marker {
	said := parsePairs(files[markerFile])
	if len(said) == 0 && !l.hasValue("exists", markerFile) {
		return nil
	}
	return &observed.Marker{
		Cluster: said["cluster"], Role: said["role"], RunID: said["run"], Complete: said["complete"] == "yes",
		ID: validWord(said["id"]), Derived: said["id-derived"] == "yes", Node: validWord(said["node"]),
		Machine: machineName(said["machine"]),
		Fenced:  said["fenced"], Restoring: said["restoring"] == "yes", Epoch: parseNumber(said["epoch"]),
	}
}

// maxWordBytes is the maximum length of an ID or a Node name. Names in Kubernetes have at most 253 characters.
const maxWordBytes = 253

// machineName returns the namespace and name of a Machine, as reported by a host. If the text is not valid, it returns
// "?", because the host still belongs to some Machine.
func machineName(s string) string {
	if s == "" {
		return ""
	}
	namespace, name, _ := strings.Cut(s, "/")
	if namespace, name = validWord(namespace), validWord(name); namespace == "" || name == "" {
		return "?"
	}
	return namespace + "/" + name
}

// validWord returns an ID or a name, as reported by a host, or "" if the text is not valid.
func validWord(s string) string {
	strange := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_.:", r))
	}
	if len(s) > maxWordBytes || strings.ContainsFunc(s, strange) {
		return ""
	}
	return s
}

// parseDigests parses lines "name sha256", at most maxValues.
func parseDigests(text []string) map[string]string {
	var out map[string]string
	for _, t := range text {
		if fields := strings.Fields(t); len(fields) == 2 && validWord(fields[0]) != "" && len(out) < maxValues {
			if out == nil {
				out = map[string]string{}
			}
			out[fields[0]] = fields[1]
		}
	}
	return out
}

func parseLock(l lines, files map[string][]string) *observed.Lock {
	said := parsePairs(files[lockFile])
	if len(said) == 0 && !l.hasValue("exists", lockFile) {
		return nil
	}
	generation, _ := strconv.ParseInt(said["generation"], 10, 64)
	since, _ := unixTime(said["since"])
	held := &observed.Lock{Holder: said["holder"], RunID: said["run"], Generation: generation, Since: since}
	beat, ok := unixTime(l.firstValue("beat"))
	if now := hostClock(l); ok && !now.IsZero() {
		held.Live = now.Sub(beat).Abs() <= lockLive
	}
	return held
}

// parseStep returns the running step, from its unit and the file that describes it, or nil if no step is running.
func parseStep(l lines, files map[string][]string) *observed.Step {
	switch parseUnits(l["unit"])[stepUnit]["ActiveState"] {
	case "active", "activating", "deactivating", "reloading":
	default:
		return nil
	}
	said := parsePairs(files[stepFile])
	return &observed.Step{Unit: stepUnit, RunID: said["run"], Stage: said["stage"]}
}
