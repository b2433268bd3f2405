package distro

import (
	"fmt"
	"strings"
)

// Firewall is one that a distribution may bring along. Whatever the system, each that is active is switched off:
// somebody may have installed another one than the distribution's own.
type Firewall struct {
	Name    string
	Active  string // shell command that succeeds while it filters
	Disable string // shell command that switches it off for good
}

const firewalld = "firewalld"

// Firewalls are those that are known.
func Firewalls() []Firewall {
	return []Firewall{
		{Name: "ufw", Active: "have ufw && ufw status 2>/dev/null | grep -q '^Status: active'", Disable: "ufw disable"},
		{Name: firewalld, Active: "systemctl is-active --quiet firewalld 2>/dev/null",
			Disable: "systemctl disable --now firewalld"},
	}
}

// Shell is what a host's script needs of this table, as functions in POSIX sh: package_install and firewall_off. They
// call have, say and die, which the script has. The zero System, of which nothing is known, installs nothing.
func (s System) Shell() string { return s.packageInstall() + "\n" + firewallOff() }

// ToolPackages are pairs TOOL=PACKAGE, for the same script.
func (s System) ToolPackages() string {
	pairs := make([]string, 0, len(Tools()))
	for _, tool := range Tools() {
		pairs = append(pairs, tool+"="+s.Packages.PackageOf(tool))
	}
	return strings.Join(pairs, " ")
}

// packageInstall is a function that installs the packages it is given.
func (s System) packageInstall() string {
	const refuse = `die "no package manager that is known, and missing: $*"`
	var b strings.Builder
	b.WriteString("package_install() {\n")
	if len(s.Packages.Managers) == 0 {
		return b.String() + "\t" + refuse + "\n}\n"
	}
	test := "if"
	for _, m := range s.Packages.Managers {
		fmt.Fprintf(&b, "\t%s have %s; then\n\t\t%s \"$@\"\n", test, m.Command, m.Install)
		test = "elif"
	}
	return b.String() + "\telse\n\t\t" + refuse + "\n\tfi\n}\n"
}

// firewallOff is a function that switches every firewall off.
func firewallOff() string {
	var b strings.Builder
	b.WriteString("firewall_off() {\n")
	for _, f := range Firewalls() {
		fmt.Fprintf(&b, "\tif %s; then\n\t\tsay \"switching %s off\"\n\t\t%s\n\tfi\n", f.Active, f.Name, f.Disable)
	}
	return b.String() + "}\n"
}
