// Package distro is the table of operating systems: everything that differs between distributions. decide asks it which
// ones are supported, scripts include the parts for a host's system, and docs/operating-systems.md is generated from
// it. Nothing else in the program knows a distribution by name.
//
// The package is data and pure functions of it.
package distro

import "slices"

// System is one operating system.
type System struct {
	ID   string // ID in /etc/os-release
	Name string // name for messages
	// Manifest is the value of a host's operatingSystem in the manifest; "" if the manifest has none for it.
	Manifest string
	// Packages says how packages are installed. The zero value stands for a system without a package manager, which
	// must already have all Tools.
	Packages Packages
	Firewall string // name of the firewall that is on by default; "" for none
	Notes    string // what else users should know, as a sentence
	// Proven lists the releases that this repository's tests run on; "" means that the entry is based on documentation.
	Proven string
}

// Packages says how a family of distributions installs packages, and how it names them.
type Packages struct {
	Managers []PackageManager // the first whose command exists is used
	// Names holds the packages of Tools and of Upgrader whose package has another name than the command.
	Names map[string]string
	// Upgrader is the command that installs security updates on its own; "" if there is none.
	Upgrader string
}

// PackageManager is one program that installs packages.
type PackageManager struct {
	Command string
	Install string // shell command; names of packages are appended
}

// Tools returns the commands that kubeadm's preflight (losetup, mount) and network plugins (iptables) look for.
func Tools() []string { return []string{"losetup", "mount", "iptables"} }

// The programs that install security updates on their own.
const (
	aptUpgrader = "unattended-upgrade"
	dnfUpgrader = "dnf-automatic"
)

// debianPackages returns the packages of Debian and its derivatives.
func debianPackages() Packages {
	const wait = "apt-get -o DPkg::Lock::Timeout=120 "
	return Packages{
		Managers: []PackageManager{{
			"apt-get",
			wait + "update -q && DEBIAN_FRONTEND=noninteractive " + wait + "install -y -q --no-install-recommends",
		}},
		Names:    map[string]string{"losetup": "mount", aptUpgrader: "unattended-upgrades"},
		Upgrader: aptUpgrader,
	}
}

// rpmPackages returns the packages of distributions that use RPM: Red Hat's family with dnf, formerly yum, and SUSE's
// with zypper.
func rpmPackages(managers ...PackageManager) Packages {
	return Packages{Managers: managers, Names: map[string]string{"losetup": "util-linux", "mount": "util-linux"}}
}

func redHatPackages() Packages {
	p := rpmPackages(PackageManager{"dnf", "dnf install -y"}, PackageManager{"yum", "yum install -y"})
	p.Upgrader = dnfUpgrader
	return p
}

func susePackages() Packages {
	return rpmPackages(PackageManager{"zypper", "zypper --non-interactive install --no-recommends"})
}

// row is a system and a function for its Packages, which few callers need.
type row struct {
	System
	packages func() Packages
}

func (r row) system() System {
	if r.packages != nil {
		r.Packages = r.packages()
	}
	return r.System
}

var rows = []row{
	{System{ID: "ubuntu", Name: "Ubuntu", Manifest: "ubuntu"}, debianPackages},
	{System{ID: "debian", Name: "Debian", Manifest: "debian", Proven: "12, 13"}, debianPackages},
	{System{ID: "centos", Name: "CentOS Stream", Manifest: "centos", Firewall: firewalld}, redHatPackages},
	{System{ID: "rhel", Name: "RHEL", Manifest: "rhel", Firewall: firewalld}, redHatPackages},
	{System{ID: "rocky", Name: "Rocky Linux", Manifest: "rockylinux", Firewall: firewalld}, redHatPackages},
	{System{
		ID: "flatcar", Name: "Flatcar", Manifest: "flatcar",
		Notes: "It has no package manager, and needs none. /usr is read-only: kubectl and crictl are in " +
			"/opt/kubeone/bin only.",
	}, nil},
	{System{ID: "almalinux", Name: "AlmaLinux", Firewall: firewalld}, redHatPackages},
	{System{ID: "amzn", Name: "Amazon Linux"}, redHatPackages},
	{System{ID: "fedora", Name: "Fedora", Firewall: firewalld}, redHatPackages},
	{System{ID: "opensuse-leap", Name: "openSUSE Leap", Firewall: firewalld}, susePackages},
	{System{ID: "opensuse-tumbleweed", Name: "openSUSE Tumbleweed", Firewall: firewalld}, susePackages},
	{System{ID: "sles", Name: "SLES", Firewall: firewalld}, susePackages},
}

// Systems returns the table.
func Systems() []System {
	var out []System
	for _, r := range rows {
		out = append(out, r.system())
	}
	return out
}

// Find returns the system with that ID of /etc/os-release, and whether the table has it.
func Find(id string) (System, bool) {
	for _, r := range rows {
		if r.ID == id {
			return r.system(), true
		}
	}
	return System{}, false
}

// Supported reports whether hosts with that ID of /etc/os-release can be installed.
func Supported(id string) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.ID == id })
}

// IDs returns the IDs of all systems, sorted.
func IDs() []string {
	var out []string
	for _, s := range Systems() {
		out = append(out, s.ID)
	}
	slices.Sort(out)
	return out
}

// ManifestNames returns the values of a host's operatingSystem in the manifest, in the table's order.
func ManifestNames() []string {
	var out []string
	for _, s := range Systems() {
		if s.Manifest != "" {
			out = append(out, s.Manifest)
		}
	}
	return out
}

// PackagesOf returns the packages for the given Tools, each once, in the order of Tools; it ignores other names. It is
// nil on a system without a package manager.
func (s System) PackagesOf(tools []string) []string {
	var out []string
	for _, tool := range Tools() {
		name := s.Packages.PackageOf(tool)
		if len(s.Packages.Managers) > 0 && slices.Contains(tools, tool) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// PackageOf returns the package that contains a tool.
func (p Packages) PackageOf(tool string) string {
	if name, ok := p.Names[tool]; ok {
		return name
	}
	return tool
}
