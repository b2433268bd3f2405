package hostile

import (
	"fmt"
	"slices"
	"strings"
)

// numberAttempts returns attempts with impossible values.
func numberAttempts() []attempt {
	out := []attempt{
		{name: "10^200 processors, and as much of everything", as: everybody,
			says: addLines("-cpus", "-memory", "-disk",
				"cpus\t1"+strings.Repeat("0", 200), "memory\tMemTotal: 1"+strings.Repeat("0", 200)+" kB",
				"disk\tFilesystem", "disk\t/dev/vda 1 1 1"+strings.Repeat("0", 200)+" 1% /")},
		{name: "fewer than none", as: []role{worker, firstContact}, says: addLines("-cpus", "-memory", "cpus\t-4",
			"memory\tMemTotal: -1 kB", "filesystem\t-1 -1 -1 -1")},
		{name: "numbers that are none: NaN, Inf, 0x10, 1e9", as: everybody, says: addLines(
			"part\tscript NaN NaN", "part\tscript -Inf +Inf", "part\tscript 1e300 1e308", "part\tcerts 0x10 1e9",
			"filesystem\tNaN NaN NaN NaN", "beat\tNaN")},
		{name: "spans of a hundred thousand parts, called API and etcd", as: asWorker, says: func(g *trial) []string {
			return append(g.honestAnswer(), slices.Repeat([]string{"part\tAPI 1 2", "part\tetcd 1 9e9"}, 50_000)...)
		}},
		{name: "a clock of the year 36812", as: everybody, says: addLines("-clock", "clock\t1099511627776.5")},
		{name: "a clock of 1970", as: []role{worker, firstContact}, says: addLines("-clock", "clock\t0")},
		{name: "a hundred thousand clocks, years apart", as: asWorker, says: func(g *trial) []string {
			return append(g.honestAnswer(), slices.Repeat([]string{"clock\t0", "clock\t1099511627775"}, 50_000)...)
		}},
		{name: "statuses that HTTP does not have", as: asWorker,
			says: addLines("-health", "health\tkubelet 999999999999999999", "health\tkubelet -20", "health\tx 200")},
		{name: "ports below and above all", as: everybody, says: addLines(
			"listen\tLISTEN 0 1 *:-1 *:*", "listen\tLISTEN 0 1 *:99999999 *:*", "socket\t0: 0:FFFFFFFFFFFF 0:0 0A",
			"listen\tLISTEN 0 1 *:10250 *:* users:((\""+strings.Repeat("x", 50_000)+"\",pid=1,fd=2))")},
	}
	return append(out, sizeAttempts()...)
}

// sizeAttempts returns attempts with too many lines.
func sizeAttempts() []attempt {
	repeated := func(name string, n int, line func(i int) string) attempt {
		return attempt{name: name, as: asWorker, says: func(g *trial) []string {
			out := g.honestAnswer()
			for i := range n {
				out = append(out, line(i))
			}
			return out
		}}
	}
	return []attempt{
		repeated("a hundred thousand addresses", 100_000, func(i int) string {
			return fmt.Sprintf("address\t2: e i 11.%d.%d.%d/8", i/62500, i/250%250, i%250+1)
		}),
		repeated("a hundred thousand missing tools", 100_000, func(i int) string {
			return fmt.Sprintf("missing\t$(reboot)%d", i)
		}),
		repeated("eighty thousand static pods", 80_000, func(i int) string {
			return fmt.Sprintf("manifest\t/etc/kubernetes/manifests/%d.yaml", i)
		}),
		repeated("a hundred thousand programs", 100_000, func(i int) string {
			return fmt.Sprintf("version\tp%d 1.2.%d", i, i)
		}),
		repeated("a hundred thousand digests", 100_000, func(i int) string {
			return fmt.Sprintf("file\t/etc/kubeone/digests:d%d 00", i)
		}),
		repeated("a hundred thousand edited files and kept folders", 50_000, func(i int) string {
			return fmt.Sprintf("edited\t/etc/x%d: FAILED\nkept\t/var/lib/kubeone-old/%d", i, i)
		}),
		repeated("a hundred thousand names that nobody knows", 100_000, func(i int) string {
			return fmt.Sprintf("x%d\t1", i)
		}),
		repeated("every unit a thousand times, each time otherwise", 1_000, func(i int) string {
			return fmt.Sprintf("unit\t\nunit\tId=x%d.service\nunit\tActiveState=%d\nunit\t", i, i)
		}),
	}
}

// escape contains what an attacker would like to send to a terminal: a window title, clear screen, an overwritten line,
// text that runs backwards, a link, and invalid UTF-8.
const escape = "\x1b]0;owned\a\x1b[2J\x1b[1;1H\x1b]8;;http://evil\x1b\\\r\x08\x7f" +
	"\u202egnp.exe\u2066\u009b2J\x9b\x00\xff\xfe\u200b\ufeff\ufffdX"

// fieldLines returns the lines with texts that are shown, stored or compared, with a placeholder for a text.
func fieldLines() map[string]string {
	return map[string]string{
		"its name":                "hostname\t%s",
		"its machine ID":          "machine-id\t%s",
		"its kernel":              "uname\t6.1.%s x86_64",
		"its processor":           "uname\t6.1.0 %s",
		"its distribution":        "file\t/etc/os-release:ID=%s",
		"its distribution's name": "file\t/etc/os-release:PRETTY_NAME=\"%s\"",
		"its swap":                "swap\t%s",
		"a tool that is missing":  "missing\t%s",
		"its firewall":            "firewall\t%s ours",
		"its address":             "address\t2: eth0 inet %s/24",
		"who has a port":          "listen\tLISTEN 0 1 *:10250 *:* users:((\"%s\",pid=1,fd=2))",
		"a program":               "link\tl 1 root root 1 Jan 2 10:00 %s -> /opt/kubeone/%s/1.2.3/x",
		"a program's version":     "version\tkubelet 1.36.3-%s",
		"a unit's state": "unit\t\nunit\tId=kubelet.service\nunit\tLoadState=loaded\n" +
			"unit\tActiveState=%s\nunit\tSubState=%s\nunit\t",
		"a static pod":            "manifest\t/etc/kubernetes/manifests/%s.yaml",
		"an API server's version": "yaml\t/etc/kubernetes/manifests/kube-apiserver.yaml:    image: r/x:v%s",
		"the API endpoint":        "yaml\t/etc/kubernetes/kubelet.conf:    server: https://%s:6443",
		"a certificate's file":    "pem\t==> /etc/kubernetes/pki/%s.crt <==",
		"the marker's cluster":    "file\t/etc/kubeone/marker:cluster=%s",
		"the marker's role":       "file\t/etc/kubeone/marker:role=%s",
		"the marker's run":        "file\t/etc/kubeone/marker:run=%s",
		"the marker's ID":         "file\t/etc/kubeone/marker:id=%s",
		"the marker's Node":       "file\t/etc/kubeone/marker:node=%s",
		"the marker's fence":      "file\t/etc/kubeone/marker:fenced=%s",
		"the holder of its lock": "exists\t/var/lib/kubeone/lock/owner\n" +
			"file\t/var/lib/kubeone/lock/owner:holder=%s\nfile\t/var/lib/kubeone/lock/owner:run=%s",
		"the version it goes to": "file\t/var/lib/kubeone/upgrading:%s",
		"an edited file":         "edited\t/etc/%s: FAILED",
		"a file with keys":       "exposed\t644 0 /etc/kubernetes/pki/%s.key",
		"a kept folder":          "kept\t/var/lib/kubeone-old/%s",
		"what etcd said":         "etcd-lost\t%s",
		"a digest":               "file\t/etc/kubeone/digests:kubelet %s",
		"a part of the script":   "part\t%s 1 2",
		"the name of a line":     "%s\t1",
		"the step that runs": "unit\t\nunit\tId=kubeone-step.service\nunit\tActiveState=active\nunit\t\n" +
			"file\t/var/lib/kubeone/step/current:stage=%s\n" +
			"file\t/var/lib/kubeone/step/current:run=%s",
	}
}

// textAttempts returns attempts with texts for a terminal, a file name or a shell, in each field.
func textAttempts() []attempt {
	var names []string
	for name := range fieldLines() {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []attempt
	filled := func(line, text string) []string {
		// Remove the honest line of the same field.
		begin, _, _ := strings.Cut(line, "%s")
		first, _, more := strings.Cut(begin, "\n")
		if more {
			first = "-" + first + "never"
		} else {
			first = "-" + first
		}
		return append([]string{first}, strings.Split(strings.ReplaceAll(line, "%s", text), "\n")...)
	}
	for _, name := range names {
		line := fieldLines()[name]
		as := asWorker
		if strings.HasPrefix(name, "its") {
			as = []role{worker, firstContact}
		}
		out = append(out, attempt{name: "terminal escapes in " + name, as: as, says: addLines(filled(line, escape)...)})
	}
	everywhere := func(text string) func(*trial) []string {
		return func(g *trial) []string {
			lines := g.honestAnswer()
			for _, name := range names {
				if name != "its name" {
					lines = append(lines, strings.Split(strings.ReplaceAll(fieldLines()[name], "%s", text), "\n")...)
				}
			}
			return lines
		}
	}
	return append(out,
		attempt{name: "commands for a shell in every field", as: asWorker,
			says: everywhere("$(reboot)`reboot`;reboot\" '#")},
		attempt{name: "paths in every field", as: asWorker, says: everywhere("../../../../etc/cron.d/owned")},
		attempt{name: "YAML and JSON in every field", as: asWorker, says: everywhere(`"}],"x":{{ . }}{"a":"\u001b[2J`)},
		attempt{name: "50,000 letters in every field", as: asWorker, says: everywhere(strings.Repeat("long ", 10_000))},
	)
}
