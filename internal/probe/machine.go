package probe

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/observed"
)

// parseMachine fills in what the host is, whatever runs on it.
func parseMachine(h *observed.Host, l lines, files map[string][]string) {
	h.Hostname = validWord(strings.ToLower(l.firstValue("hostname"))) // as kubeadm names a node
	h.MachineID, h.BootID = l.firstValue("machine-id"), l.firstValue("boot-id")
	kernel, arch, _ := strings.Cut(l.firstValue("uname"), " ")
	h.Kernel, h.Arch = kernel, goArch(strings.TrimSpace(arch))
	h.CPUs = parseNumber(l.firstValue("cpus"))
	h.MemoryMiB = parseMemory(l.firstValue("memory"))
	h.DiskMiB = parseDisk(l["disk"])
	h.Unwritable = parseUnwritable(l)
	h.OS = parseOSRelease(files)
	parseBefore(h, l)
	h.Tools, h.Unguarded = l.validWords("missing"), l.validWords("unguarded")
	h.Firewalls = parseFirewalls(l)
	h.Addresses = parseAddresses(l)
	h.Ports = portsInUse(l)
}

// goArch is Go's name for what uname -m prints; unknown names stay as they are.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "armv7l", "armv6l":
		return "arm"
	case "i386", "i686":
		return "386"
	}
	return machine
}

// parseNumber reads a decimal of at least 0; anything else is 0.
func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// parseMemory reads "MemTotal: 1048576 kB".
func parseMemory(s string) int {
	fields := strings.Fields(s)
	if len(fields) < 2 || fields[0] != "MemTotal:" {
		return 0
	}
	return parseNumber(fields[1]) / 1024
}

// leastFree is how many bytes a disk must have left, for root, to take a lock of a few hundred.
const leastFree = 64 << 10

// parseUnwritable says why nothing can be written where our state is: from free blocks, their size, free inodes and all
// inodes, which are 0 on a file system that has no such limit.
func parseUnwritable(l lines) string {
	if l.hasValue("unwritable", "yes") {
		return "its file system is read-only"
	}
	var blocks, size, free, inodes int64
	if n, _ := fmt.Sscan(l.firstValue("filesystem"), &blocks, &size, &free, &inodes); n != 4 {
		return ""
	}
	switch {
	case blocks < leastFree/max(size, 1):
		return "its disk is full"
	case inodes > 0 && free < 4:
		return "its disk has no inodes left"
	}
	return ""
}

// parseDisk reads the last line of df -Pk: file system, size, used, available (KiB), ...
func parseDisk(df []string) int {
	if len(df) < 2 {
		return 0
	}
	fields := strings.Fields(df[len(df)-1])
	if len(fields) < 4 {
		return 0
	}
	return parseNumber(fields[3]) / 1024
}

func parseOSRelease(files map[string][]string) observed.OS {
	release := parsePairs(files["/etc/os-release"])
	if len(release) == 0 {
		release = parsePairs(files["/usr/lib/os-release"])
	}
	return observed.OS{ID: release["ID"], VersionID: release["VERSION_ID"], Name: release["PRETTY_NAME"]}
}

// clusterInterfaces are how names of interfaces begin that the cluster itself, or another container runtime,
// makes on a host.
func clusterInterfaces() []string {
	return append([]string{"cni", "docker", "br-", "kube-", "nodelocaldns", "lxc", "veth", "tunl"},
		plugins.Traces().Interfaces...)
}

// parseAddresses are the host's own, of global scope, sorted, and no more than mostValues.
func parseAddresses(l lines) []string {
	found := strings.Fields(l.firstValue("addresses")) // hostname -I
	for _, v := range l["address"] {                   // "2: eth0    inet 10.0.0.1/24 brd ... scope global eth0"
		fields := strings.Fields(v)
		if len(fields) < 4 || ofCluster(fields[1]) {
			continue
		}
		found = append(found, fields[3])
	}
	var out []string
	for _, f := range found {
		ip, _, _ := strings.Cut(f, "/")
		if a, err := netip.ParseAddr(ip); err == nil && a.IsGlobalUnicast() {
			out = append(out, a.String())
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), mostValues)]
}

func ofCluster(device string) bool {
	return slices.ContainsFunc(clusterInterfaces(), func(prefix string) bool {
		return strings.HasPrefix(device, prefix)
	})
}

// parseFirewalls reads lines "NAME ours", "NAME other" and "NAME off": of each firewall that is known, the first of
// them.
func parseFirewalls(l lines) []observed.Firewall {
	var out []observed.Firewall
	for _, name := range observed.FirewallNames() {
		states := map[string]observed.Firewall{
			name + " ours": {Name: name, Ours: true}, name + " other": {Name: name},
			name + " off": {Name: name, Off: true},
		}
		for _, v := range l["firewall"] {
			if f, ok := states[v]; ok {
				out = append(out, f)
				break
			}
		}
	}
	return out
}

// ourPorts are those of the control plane and the kubelet.
func ourPort(n int) bool {
	return slices.Contains([]int{6443, 2379, 2380, 10250, 10257, 10259}, n)
}

// socket is one on which something listens.
type socket struct {
	address string // as it is given there
	port    int
	process string // "" where it is not known
	user    int    // 0 is root, or is not known
}

// parseSockets are those of ss -ltnep or, without processes, of /proc/net/tcp.
func parseSockets(l lines) []socket {
	var out []socket
	for _, v := range l["listen"] { // LISTEN 0 4096 127.0.0.1:2379 0.0.0.0:* users:(("etcd",pid=1,fd=7)) uid:1000 ino:2
		fields := strings.Fields(v)
		if len(fields) < 5 {
			continue
		}
		address, port, _ := net.SplitHostPort(fields[3])
		_, rest, _ := strings.Cut(v, `users:(("`)
		process, _, _ := strings.Cut(rest, `"`)
		s := socket{address: address, port: parseNumber(port), process: process}
		// The first one: a name of the owner's own choice may be behind it.
		if i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "uid:") }); i >= 0 {
			s.user = parseNumber(fields[i][len("uid:"):])
		}
		out = append(out, s)
	}
	for _, v := range l["socket"] { // 0: 0100007F:094B 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 ...
		fields := strings.Fields(v)
		if len(fields) < 2 {
			continue
		}
		address, hex, _ := strings.Cut(fields[1], ":")
		n, _ := strconv.ParseUint(hex, 16, 16)
		s := socket{address: address, port: int(n)}
		if len(fields) > 7 {
			s.user = parseNumber(fields[7])
		}
		out = append(out, s)
	}
	return out
}

// answeringUser is the user whose process answers who dials that port at 127.0.0.1: whoever listens there goes before
// who listens everywhere. 0 is root, or nobody that is known.
func answeringUser(listening []socket, port int) int {
	best, user := 0, 0
	for _, s := range listening {
		if rank := s.loopbackRank(); s.port == port && rank > best {
			best, user = rank, s.user
		}
	}
	return user
}

// loopbackRank is how near the socket is to who dials 127.0.0.1; 0 is not at all. ss calls [::] what takes IPv6 alone,
// and * what takes both; in the kernel's table these are the same.
func (s socket) loopbackRank() int {
	switch s.address {
	case "127.0.0.1", "::ffff:127.0.0.1", "0100007F", "0000000000000000FFFF00000100007F":
		return 3
	case "0.0.0.0", "00000000":
		return 2
	case "*", "00000000000000000000000000000000":
		return 1
	}
	return 0
}

// portsInUse lists which of our ports something listens on.
func portsInUse(l lines) []observed.Port {
	found := map[int]string{}
	for _, s := range parseSockets(l) {
		if ourPort(s.port) && (found[s.port] == "" || s.process != "") {
			found[s.port] = s.process
		}
	}
	var out []observed.Port
	for n, process := range found {
		out = append(out, observed.Port{Number: n, Process: process})
	}
	slices.SortFunc(out, func(a, b observed.Port) int { return a.Number - b.Number })
	return out
}

// hostClock is what the host's clock showed halfway through the script; zero when it did not say.
func hostClock(l lines) time.Time {
	var sum time.Duration
	var first time.Time
	n := 0
	for _, v := range l["clock"] {
		t, ok := unixTime(v)
		if !ok {
			continue
		}
		if n == 0 {
			first = t
		}
		sum += t.Sub(first)
		n++
	}
	if n == 0 {
		return time.Time{}
	}
	return first.Add(sum / time.Duration(n))
}

// latest is the end of the year 9999, after which there are no times in JSON.
const latest = 253402300799

// unixTime reads seconds since 1970, no later than latest, with or without a fraction; the fraction is dropped where
// date does not know %N.
func unixTime(s string) (time.Time, bool) {
	whole, fraction, _ := strings.Cut(strings.TrimSpace(s), ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < 0 || seconds > latest {
		return time.Time{}, false
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil || nanos < 0 {
		nanos = 0
	}
	return time.Unix(seconds, nanos).UTC(), true
}
