package distro

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"kubeone/internal/model/observed"
	"kubeone/internal/testutil/golden"
)

func TestEverySystemIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range Systems() {
		if s.ID == "" || s.Name == "" || seen[s.ID] || s.Manifest != "" && seen["manifest "+s.Manifest] {
			t.Errorf("%+v lacks an ID or a name, or is there twice", s)
		}
		seen[s.ID], seen["manifest "+s.Manifest] = true, true
		for _, m := range s.Packages.Managers {
			if m.Command == "" || m.Install == "" {
				t.Errorf("%s: %+v", s.ID, m)
			}
		}
		if s.Firewall != "" && !slices.Contains(observed.FirewallNames(), s.Firewall) {
			t.Errorf("%s has the firewall %s, which scripts do not configure", s.ID, s.Firewall)
		}
	}
	if !slices.IsSorted(IDs()) || len(IDs()) != len(Systems()) {
		t.Errorf("IDs %v", IDs())
	}
}

func TestShellIsPOSIX(t *testing.T) {
	t.Parallel()
	for _, s := range append(Systems(), System{}) {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(s.Shell()),
			s.ID); err != nil {
			t.Error(err)
		}
	}
}

func TestUnknownSystemsAreNotSupported(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "alpine", "Debian", "rockylinux"} {
		if Supported(id) {
			t.Errorf("%q is supported", id)
		}
	}
	if s, ok := Find("rocky"); !ok || s.Manifest != "rockylinux" || !Supported("rocky") {
		t.Errorf("rocky: %+v, %t", s, ok)
	}
}

const docsIntro = `# Operating systems

Written from the table in ` + "`internal/model/distro`" + `; ` +
	"`go test ./internal/model/distro -update`" + ` rewrites it.

kubeone recognises an operating system by ` + "`ID`" + ` in /etc/os-release.

- *manifest* is the value of a host's ` + "`operatingSystem`" + `, which is optional.
- *packages* are installed if a command is missing (%s), with the first available package
  manager. kubeone installs everything else itself, the same on every system.
- *firewall* is the one that is on by default. If %s is active, kubeone
  [opens its ports](ports.md).
- *proven* lists the releases that the tests run on. Support for other systems follows their documentation.

| system | ID | manifest | package managers | packages | firewall | proven | notes |
|---|---|---|---|---|---|---|---|
`

// What a host lacks is reported before any change.
func TestProbeChecksAllTools(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../probe/script.sh")
	if err != nil {
		t.Fatal(err)
	}
	if want := "for tool in " + strings.Join(Tools(), " ") + "; do"; !strings.Contains(string(script), want) {
		t.Errorf("the probe's script does not have %q", want)
	}
}

func TestPackagesOfMissingTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		os   string
		have []string
		want []string
	}{
		{"debian", []string{"losetup", "mount", "iptables"}, []string{"mount", "iptables"}},
		{"fedora", []string{"iptables", "losetup"}, []string{"util-linux", "iptables"}},
		{"debian", []string{"rm -rf"}, nil}, // a host says what it wants
		{"flatcar", []string{"iptables"}, nil},
		{"plan9", []string{"iptables"}, nil},
	} {
		system, _ := Find(tt.os)
		if got := system.PackagesOf(tt.have); !slices.Equal(got, tt.want) {
			t.Errorf("%s without %v: %q, want %q", tt.os, tt.have, got, tt.want)
		}
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	fmt.Fprintf(&b, docsIntro, strings.Join(Tools(), ", "), strings.Join(observed.FirewallNames(), " or "))
	for _, s := range Systems() {
		var managers []string
		for _, m := range s.Packages.Managers {
			managers = append(managers, m.Command)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %s | %s |\n", s.Name, s.ID, markdownCode(s.Manifest),
			strings.Join(managers, ", "),
			strings.Join(s.PackagesOf(Tools()), ", "), s.Firewall, s.Proven, s.Notes)
	}
	golden.Check(t, "../../../docs/operating-systems.md", b.String())
}

func markdownCode(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// The README leaves the list to the table, and names the proven systems like the table.
func TestREADMENamesProvenReleases(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Systems() {
		named := strings.Contains(string(readme), s.Name+" "+s.Proven+",")
		if s.Proven != "" && !named {
			t.Errorf("%s %s is proven, and the README does not say so", s.Name, s.Proven)
		}
	}
	if !strings.Contains(string(readme), "docs/operating-systems.md") {
		t.Error("the README does not refer to docs/operating-systems.md")
	}
}
