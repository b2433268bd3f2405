// Package settings lists what a reconfiguration changes on a host and in the cluster, line by line: the live text
// against the manifest's. It is pure. It does not render what kubeadm makes, and compares only what the manifest
// decides of that. Whatever is not known is reported as unknown.
package settings

import (
	"path"
	"slices"
	"strings"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/text/diff"
)

// Live holds the contents of a host's files.
type Live struct {
	Texts  map[string]string // by path; a missing file has none
	Kept   map[string]string // originals of files that were changed since
	Cut    map[string]bool   // files that are too long to read
	Failed string            // why nothing was read; "" if all was read
}

const kubeletConfig = "/var/lib/kubelet/config.yaml"

// staticPods lists those of a control-plane host, in display order.
var staticPods = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

func manifestOf(pod string) string { return "/etc/kubernetes/manifests/" + pod + ".yaml" }

// Paths returns the files to read on a host whose configurations of these names differ; some are patterns.
func Paths(in componentconfig.Input, names []string) []string {
	var out []string
	for _, name := range names {
		for _, f := range componentconfig.SettingsFiles(in, name) {
			if !strings.HasPrefix(f.Path, componentconfig.CertsDir) {
				out = append(out, f.Path)
			}
		}
		switch {
		case name == "containerd":
			out = append(out, componentconfig.CertsDir+"/*/hosts.toml")
		case name == "kubelet":
			out = append(out, kubeletConfig)
		case name == desired.ComponentsDigest:
			for _, pod := range staticPods {
				out = append(out, manifestOf(pod))
			}
			out = append(out, componentconfig.ComponentPatterns()...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OfHost returns the changes on a host whose configurations of these names differ.
func OfHost(in componentconfig.Input, names []string, live Live) []diff.Change {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == desired.CredentialsConfiguration // OfCredentials has them
	})
	if len(names) == 0 {
		return nil
	}
	if live.Failed != "" {
		return []diff.Change{diff.Summary(strings.Join(names, ", "), "the host's files were not read: "+live.Failed)}
	}
	var out []diff.Change
	for _, name := range names {
		var changes []diff.Change
		switch {
		case name == desired.ComponentsDigest:
			changes = append(compareFlags(in.Want, live), componentFiles(in, live)...)
		case name == desired.SwapConfiguration:
			changes = []diff.Change{diff.Summary(name, "swap is in use; kubeone manages no file for it")}
		case name == desired.HardeningDigest:
			changes = []diff.Change{diff.Summary(name, "only the modes of files change")}
		case name == "kubelet":
			changes = append(compareFiles(in, name, live), compareKubelet(in, live)...)
		default:
			changes = compareFiles(in, name, live)
		}
		if len(changes) == 0 {
			changes = append(changes, diff.Summary(name, "no compared line differs: the host was configured by another "+
				"version of kubeone, or the difference is in what kubeadm creates"))
		}
		out = append(out, changes...)
	}
	return out
}

// compareFiles compares files that are written as rendered; for registries also removed files.
func compareFiles(in componentconfig.Input, name string, live Live) []diff.Change {
	will := map[string]string{}
	var paths []string
	for _, f := range componentconfig.SettingsFiles(in, name) {
		will[f.Path] = f.Content
		paths = append(paths, f.Path)
	}
	for p := range live.Texts {
		if _, stays := will[p]; !stays && name == "containerd" && strings.HasPrefix(p, componentconfig.CertsDir+"/") {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	var out []diff.Change
	for _, p := range paths {
		out = append(out, compareFile(p, live, will[p], in.Want.Containerd.SandboxImage != "")...)
	}
	return out
}

func compareFile(p string, live Live, will string, sandboxNamed bool) []diff.Change {
	if live.Cut[p] {
		return []diff.Change{diff.Summary(p, tooLong)}
	}
	is := live.Texts[p]
	switch {
	case p == componentconfig.CABundle:
		is, will = certificateFingerprints(is), certificateFingerprints(will)
	case path.Base(p) == "config.toml" && !sandboxNamed:
		will = withSandbox(will, is)
	}
	return changeOf(p, is, will)
}

const tooLong = "the file is too long to read"

// withSandbox keeps the current line with the sandbox image in containerd's configuration.
func withSandbox(will, is string) string {
	for line := range strings.Lines(is) {
		if !strings.HasPrefix(line, componentconfig.SandboxLine) {
			continue
		}
		lines := strings.Split(will, "\n")
		for i := range lines {
			if strings.HasPrefix(lines[i], componentconfig.SandboxLine) {
				lines[i] = strings.TrimRight(line, "\n")
			}
		}
		return strings.Join(lines, "\n")
	}
	return will
}

// Restored returns the changes that restore these files.
func Restored(paths []string, live Live) []diff.Change {
	var out []diff.Change
	for _, p := range paths {
		kept, known := live.Kept[p]
		switch {
		case live.Failed != "":
			out = append(out, diff.Summary(p, "the host's files were not read: "+live.Failed))
		case live.Cut[p]:
			out = append(out, diff.Summary(p, tooLong))
		case !known:
			out = append(out, diff.Summary(p, "the original that the host has kept was not read"))
		default:
			out = append(out, changeOf(p, live.Texts[p], kept)...)
		}
	}
	return out
}
