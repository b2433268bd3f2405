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

// parseMachine adds facts about the machine to h: name, hardware, operating system, addresses, disk and clock.
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

// goArch returns the Go name of the architecture that uname -m prints. It returns unknown names unchanged.
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

// parseNumber parses a decimal of at least 0; anything else is 0.
func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// parseMemory parses "MemTotal: 1048576 kB".
func parseMemory(s string) int {
	fields := strings.Fields(s)
	if len(fields) < 2 || fields[0] != "MemTotal:" {
		return 0
	}
	return parseNumber(fields[1]) / 1024
}

// leastFree is the free space, in bytes, below which a host counts as full. A lock needs a few hundred bytes.
const leastFree = 64 << 10

// parseUnwritable returns why our state directory is not writable, or "" if it is. It uses the number of free blocks,
// their size, and the numbers of free and of all inodes. Inodes are 0 on file systems without such a limit.
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

// parseDisk parses the last line of df -Pk: file system, size, used, available (KiB), ...
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

// clusterInterfaces returns the name prefixes of network interfaces that the cluster or another container runtime
// creates.
func clusterInterfaces() []string {
	return append([]string{"cni", "docker", "br-", "kube-", "nodelocaldns", "lxc", "veth", "tunl"},
		plugins.Traces().Interfaces...)
}

// parseAddresses returns the addresses of global scope of the host, without those of cluster interfaces. They are
// sorted, and at most maxValues.
func parseAddresses(l lines) []string {
	found := strings.Fields(l.firstValue("addresses")) // hostname -I
	for _, v := range l["address"] {                   // "2: eth0    inet 10.0.0.1/24 brd ... scope global eth0"
		fields := strings.Fields(v)
		if len(fields) < 4 || isClusterInterface(fields[1]) {
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
	return out[:min(len(out), maxValues)]
}

func isClusterInterface(device string) bool {
	return slices.ContainsFunc(clusterInterfaces(), func(prefix string) bool {
		return strings.HasPrefix(device, prefix)
	})
}

// parseFirewalls parses lines "NAME ours", "NAME other" and "NAME off". It ignores unknown firewalls and repeated
// names.
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

// isOurPort reports whether the control plane or the kubelet uses the port.
func isOurPort(n int) bool {
	return slices.Contains([]int{6443, 2379, 2380, 10250, 10257, 10259}, n)
}

// socket is a listening socket.
type socket struct {
	address string // as printed
	port    int
	process string // "" if unknown
	user    int    // 0: root, or unknown
}

// parseSockets parses the output of ss -ltnep or, without processes, of /proc/net/tcp.
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
		// The first match counts: a name chosen by the owner may follow.
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

// answeringUser returns the ID of the user whose process answers on that port at 127.0.0.1; 0 means root or unknown. A
// process that listens on that address takes precedence over one that listens on all addresses.
func answeringUser(listening []socket, port int) int {
	best, user := 0, 0
	for _, s := range listening {
		if rank := s.loopbackRank(); s.port == port && rank > best {
			best, user = rank, s.user
		}
	}
	return user
}

// loopbackRank returns how specifically the socket listens on 127.0.0.1; 0 means not at all. ss prints [::] for IPv6
// only and * for both IPv4 and IPv6; the kernel table does not distinguish them.
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

// portsInUse returns our ports that are in use.
func portsInUse(l lines) []observed.Port {
	found := map[int]string{}
	for _, s := range parseSockets(l) {
		if isOurPort(s.port) && (found[s.port] == "" || s.process != "") {
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

// hostClock returns the time on the host halfway through the script, or zero if the host does not report it.
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

// latest is the end of the year 9999, the last time that JSON can express.
const latest = 253402300799

// unixTime parses a Unix time in seconds, with an optional fraction, and rejects times before 1970 or after the
// constant latest. It ignores the fraction if it is not a number, which happens if the host's date command does not
// support %N.
func unixTime(s string) (time.Time, bool) {
	digits, fraction, _ := strings.Cut(strings.TrimSpace(s), ".")
	seconds, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || seconds < 0 || seconds > latest {
		return time.Time{}, false
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil || nanos < 0 {
		nanos = 0
	}
	return time.Unix(seconds, nanos).UTC(), true
}
