package distro

import (
	"fmt"
	"strings"
)

const firewalld = "firewalld"

// Shell returns package_install, a POSIX sh function for a host's script. It calls the script's functions have and die.
// The zero System, an unknown one, installs nothing.
func (s System) Shell() string { return s.packageInstall() }

// ToolPackages returns TOOL=PACKAGE pairs for the same script.
func (s System) ToolPackages() string {
	pairs := make([]string, 0, len(Tools()))
	for _, tool := range Tools() {
		pairs = append(pairs, tool+"="+s.Packages.PackageOf(tool))
	}
	return strings.Join(pairs, " ")
}

// UpgraderPackage returns COMMAND=PACKAGE of the Upgrader for the same script; "" if there is none.
func (s System) UpgraderPackage() string {
	if s.Packages.Upgrader == "" {
		return ""
	}
	return s.Packages.Upgrader + "=" + s.Packages.PackageOf(s.Packages.Upgrader)
}

// packageInstall returns a function that installs the given packages.
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
