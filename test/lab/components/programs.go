package components

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// protocols contains the names of protocols. Without it nft prints numbers, and a kube-proxy does not recognize the
// rules of an earlier instance as its own. It then deletes rules that it has just added, and no Service answers.
const protocols = "/etc/protocols"

// netfilterTools returns a layer with nft and iptables of this machine's Debian, with their libraries and names.
// kube-proxy and network plugins call them.
func netfilterTools(ctx context.Context) (layerSpec, error) {
	packages := map[string]string{"nft": "nftables", "xtables-nft-multi": "iptables", protocols: "netbase"}
	if err := EnsurePackages(ctx, packages); err != nil {
		return layerSpec{}, err
	}
	layer := layerSpec{Files: map[string]string{}, Links: map[string]string{}}
	if err := addFile(layer, protocols); err != nil {
		return layer, err
	}
	for _, program := range []string{"nft", "xtables-nft-multi"} {
		if err := addProgram(ctx, layer, program); err != nil {
			return layer, err
		}
	}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			layer.Links["usr/sbin/"+name+verb] = "xtables-nft-multi"
			layer.Links["usr/sbin/"+name+"-nft"+verb] = "xtables-nft-multi"
		}
	}
	extensions, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	if err != nil || len(extensions) == 0 {
		return layer, fmt.Errorf("find iptables' extensions in /usr/lib: %w", err)
	}
	for _, path := range extensions {
		if err := addFile(layer, path); err != nil {
			return layer, err
		}
	}
	return layer, nil
}

// shellTools returns a layer with a few commands in one program, for images whose manifests call cp or sh.
func shellTools(ctx context.Context) (layerSpec, error) {
	if err := EnsurePackages(ctx, map[string]string{"busybox": "busybox-static"}); err != nil {
		return layerSpec{}, err
	}
	layer := layerSpec{Files: map[string]string{}, Links: map[string]string{}}
	for _, name := range []string{"sh", "cp", "mv", "rm", "cat", "ls", "mkdir", "chmod", "ln", "sleep"} {
		layer.Links["usr/bin/"+name] = "busybox"
	}
	layer.Links["bin"] = "usr/bin"
	return layer, addProgram(ctx, layer, "busybox")
}

// addProgram adds a local program and its shared libraries to the layer.
func addProgram(ctx context.Context, layer layerSpec, name string) error {
	path, err := findProgram(name)
	if err != nil {
		return err
	}
	if err := addFile(layer, path); err != nil {
		return err
	}
	// ldd fails for a static program, which has no libraries.
	out, _ := exec.CommandContext(ctx, "ldd", path).Output()
	for _, line := range strings.Split(string(out), "\n") {
		library, ok := libraryPath(line)
		if !ok {
			continue
		}
		if err := addFile(layer, library); err != nil {
			return fmt.Errorf("library of %s: %w", name, err)
		}
	}
	return nil
}

// libraryPath returns the file in a line of ldd, if any: "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)",
// "/lib64/ld-linux-x86-64.so.2 (0x…)".
func libraryPath(line string) (string, bool) {
	for _, word := range strings.Fields(line) {
		if strings.HasPrefix(word, "/") {
			return word, true
		}
	}
	return "", false
}

func findProgram(name string) (string, error) {
	for _, dir := range []string{"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"} {
		if fileExists(dir + name) {
			return dir + name, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// addFile adds a local file at the same path. It resolves symbolic links of the file but not of its folder: /lib is a
// link to /usr/lib here and a folder in the layer.
func addFile(layer layerSpec, path string) error {
	source, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	layer.Files[strings.TrimPrefix(path, "/")] = source
	return nil
}
