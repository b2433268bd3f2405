// Package distro is the table of operating systems: all that differs from one distribution to another. decide asks it
// which ones are supported, scripts get what belongs to a host's system rendered into them, and
// docs/operating-systems.md is written from it. Nothing else in the program knows a distribution by its name.
//
// The package is data and pure functions of it.
package distro

import "slices"

// System is one operating system.
type System struct {
	ID   string // ID in /etc/os-release
	Name string // what people call it
	// Manifest is the value of a host's operatingSystem in the manifest; "" if the manifest's format has none.
	Manifest string
	// Packages says how packages are installed; the zero value stands for a system without a package manager, which
	// must have all Tools.
	Packages Packages
	Firewall string // name of the firewall that is on by default; "" for none
	Notes    string // what else its users should know, as a sentence
	// Proven is the releases on which this repository's tests run; "" means that the table was written from
	// documentation.
	Proven string
}

// Packages is how a family of distributions installs packages, and what it calls them.
type Packages struct {
	Managers []PackageManager // the first whose command exists is used
	// Names are the packages of those Tools that are not in a package of their own name.
	Names map[string]string
}

// PackageManager is one program that installs packages.
type PackageManager struct {
	Command string
	Install string // shell command to which names of packages are appended
}

// Tools returns the commands that kubeadm's preflight (losetup, mount) and network plugins (iptables) look for.
func Tools() []string { return []string{"losetup", "mount", "iptables"} }

// debianPackages returns Debian and what is made from it.
func debianPackages() Packages {
	const wait = "apt-get -o DPkg::Lock::Timeout=120 "
	return Packages{
		Managers: []PackageManager{{
			"apt-get",
			wait + "update -q && DEBIAN_FRONTEND=noninteractive " + wait + "install -y -q --no-install-recommends",
		}},
		Names: map[string]string{"losetup": "mount"},
	}
}

// rpmPackages returns the distributions that use RPM: Red Hat's and their relatives with dnf, which earlier was yum,
// SUSE's with zypper.
func rpmPackages(managers ...PackageManager) Packages {
	return Packages{Managers: managers, Names: map[string]string{"losetup": "util-linux", "mount": "util-linux"}}
}

func redHatPackages() Packages {
	return rpmPackages(PackageManager{"dnf", "dnf install -y"}, PackageManager{"yum", "yum install -y"})
}

func susePackages() Packages {
	return rpmPackages(PackageManager{"zypper", "zypper --non-interactive install --no-recommends"})
}

// row is a system and what makes its Packages, which only who asks about it needs.
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

// IDs returns those of all systems, sorted.
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

// PackagesOf returns the packages that have those of Tools, each once, in the order of Tools; nothing else counts. It
// is nil on a system without a package manager.
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

// PackageOf returns the package that has a tool.
func (p Packages) PackageOf(tool string) string {
	if name, ok := p.Names[tool]; ok {
		return name
	}
	return tool
}
