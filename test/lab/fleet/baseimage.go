package fleet

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"kubeone/test/lab/components"
)

// basePackages turn a Debian minbase into a typical server: systemd, sshd, the network tools that Kubernetes calls, and
// haproxy, which only the load balancer's host enables. There is no containerd and no runc.
var basePackages = []string{
	"systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "ca-certificates", "curl", "tar", "gzip", "zstd",
	"iproute2", "iptables", "nftables", "conntrack", "ethtool", "socat", "kmod", "procps", "util-linux", "iputils-ping",
	"haproxy",
}

// configureScript runs inside the new file system. It masks units that are useless in a container and slow down its
// start.
const configureScript = `set -eu
useradd --create-home --shell /bin/bash ops
systemctl disable -q haproxy.service
systemctl mask -q getty@tty1.service console-getty.service systemd-pstore.service systemd-firstboot.service \
	systemd-modules-load.service systemd-random-seed.service systemd-machine-id-commit.service ` +
	`systemd-update-utmp.service \
	systemd-udevd.service sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount ` +
	`sys-fs-fuse-connections.mount \
	dev-hugepages.mount apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer ` +
	`e2scrub_reap.service fstrim.timer
systemctl set-default -q multi-user.target
rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/* /var/cache/apt/archives/*.deb \
	/var/cache/apt/*.bin /var/lib/apt/lists/* /var/log/* /etc/ssh/ssh_host_* /etc/hostname /etc/resolv.conf \
	/var/lib/dbus/machine-id
: >/etc/machine-id
`

// baseImage returns the tag of the hosts' image, and builds the image if docker lacks it. release is a Debian codename;
// empty means the release of this machine.
func baseImage(ctx context.Context, cache components.Cache, release string, log Logf) (string, error) {
	debian, err := readDebian(ctx)
	if err != nil {
		return "", err
	}
	// A mirror has all releases.
	debian.codename = cmp.Or(release, debian.codename)
	digest, err := baseDigest(debian.codename)
	if err != nil {
		return "", err
	}
	tag := "kubeone-lab-host:" + debian.codename + "-" + digest
	unlock, err := cache.Lock(ctx, "base-image")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := runDocker(ctx, "image", "inspect", "--format", "{{.Id}}", tag); err == nil {
		return tag, nil
	}
	log("building the hosts' image %s with debootstrap: about 2 minutes, once", tag)
	if err := buildBase(ctx, cache, debian, tag, log); err != nil {
		return "", fmt.Errorf("build base image %s: %w", tag, err)
	}
	return tag, nil
}

// buildBase builds the image in the folder base-image.tmp of the cache.
func buildBase(ctx context.Context, cache components.Cache, debian debian, tag string, log Logf) error {
	dir := cache.Path("base-image.tmp")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	steps := []struct {
		name string
		run  func() error
	}{
		{"installing debootstrap", func() error {
			return components.EnsurePackages(ctx, map[string]string{"debootstrap": "debootstrap"})
		}},
		{"packages of Debian " + debian.codename, func() error { return bootstrapBase(ctx, cache, debian, dir) }},
		{"configuration", func() error { return configureBase(ctx, dir) }},
		{"import into docker", func() error { return importBase(ctx, dir, tag) }},
	}
	for n, step := range steps {
		if err := log.During(fmt.Sprintf("hosts' image, %d of %d: %s", n+1, len(steps), step.name),
			step.run); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func bootstrapBase(ctx context.Context, cache components.Cache, debian debian, dir string) error {
	debs := cache.Path("debs", debian.codename)
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return err
	}
	bootstrap := exec.CommandContext(ctx, "debootstrap", "--variant=minbase", "--cache-dir="+debs,
		"--include="+strings.Join(basePackages, ","), debian.codename, dir, debian.mirror)
	bootstrap.Env = append(os.Environ(), debian.proxyEnv...)
	_, err := runOutput(bootstrap)
	return err
}

// configureBase copies the lab's own files over the new file system and configures it from inside.
func configureBase(ctx context.Context, dir string) error {
	if err := writeOverlay(dir); err != nil {
		return err
	}
	configure := exec.CommandContext(ctx, "chroot", dir, "/bin/sh", "-c", configureScript)
	configure.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	_, err := runOutput(configure)
	return err
}

func importBase(ctx context.Context, dir, tag string) error {
	pack := exec.CommandContext(ctx, "sh", "-c",
		`tar -C "$1" --one-file-system -c . | docker import --change 'CMD ["/usr/local/sbin/lab-init"]' - "$2"`,
		"sh", dir, tag)
	_, err := runOutput(pack)
	return err
}

// baseDigest identifies the input of the image: another package, script or overlay file makes another image.
func baseDigest(codename string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%q\n%s\n", codename, basePackages, configureScript)
	err := eachOverlayFile(func(path string, content []byte) error {
		fmt.Fprintf(hash, "%s %o %d\n%s", path, overlayMode(path), len(content), content)
		return nil
	})
	return hex.EncodeToString(hash.Sum(nil)[:6]), err
}

// debian is the package source of this machine, and so of the hosts.
type debian struct {
	codename, mirror string
	proxyEnv         []string
}

func readDebian(ctx context.Context) (debian, error) {
	var d debian
	file, err := os.Open("/etc/os-release")
	if err != nil {
		return d, fmt.Errorf("the lab needs a Debian machine: %w", err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "VERSION_CODENAME="); ok {
			d.codename = strings.Trim(value, `"`)
		}
	}
	targets, err := runOutput(exec.CommandContext(ctx, "apt-get", "indextargets",
		"--format", "$(CODENAME) $(COMPONENT) $(ORIGIN) $(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return d, fmt.Errorf("read the machine's package sources: %w", err)
	}
	for _, line := range strings.Split(targets, "\n") {
		if f := strings.Fields(line); len(f) == 4 && f[0] == d.codename && f[1] == "main" && f[2] == "Debian" {
			d.mirror = f[3]
			break
		}
	}
	if d.codename == "" || d.mirror == "" {
		return d, fmt.Errorf("the lab needs Debian with a package source for its own release (%q) in "+
			"apt's configuration", d.codename)
	}
	for _, scheme := range []string{"http", "https"} {
		proxy, err := runOutput(exec.CommandContext(ctx, "apt-config", "shell", "P", "Acquire::"+scheme+"::Proxy"))
		if value, ok := strings.CutPrefix(strings.TrimSpace(proxy), "P="); err == nil && ok {
			d.proxyEnv = append(d.proxyEnv, scheme+"_proxy="+strings.Trim(value, `'"`))
		}
	}
	return d, nil
}
