package components

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// CiliumVersion is the default version of cilium: its images, its programs and its chart.
const CiliumVersion = "v1.20.2"

const ciliumModule = "github.com/cilium/cilium"

// ciliumPlugin returns how a version of cilium is built, without v. The manifest of a lab names it; "" is
// CiliumVersion, which the manifest does not name.
func ciliumPlugin(version string) networkPlugin {
	// The hosts lack the capability SYS_RESOURCE, which the chart adds by name to containers without privileges.
	settings := "helmValues: {securityContext: {privileged: true}}"
	c := cilium{CiliumVersion}
	if version != "" {
		settings, c = "version: "+version+", "+settings, cilium{"v" + version}
	}
	return networkPlugin{
		name: "cilium", recipes: []Recipe{c.recipe()}, images: c.images, layer: c.layer, files: c.files,
		urls: []string{c.chartURL()}, settings: "{" + settings + "}",
	}
}

// cilium is a version of cilium, with v.
type cilium struct{ version string }

// chartURL returns the URL of the chart without the scheme.
func (c cilium) chartURL() string { return "helm.cilium.io/cilium-" + c.version[1:] + ".tgz" }

// recipe builds the programs of cilium's images. Two of its modules need help: gobgp is required in a version
// that is no release, and the controllers of the multi-cluster API are not published. The operator takes one constant
// from them.
func (c cilium) recipe() Recipe {
	return Recipe{
		Name: "cilium", Module: ciliumModule, Version: c.version, Tags: "ipam_provider_operator",
		LDFlags: `-X "` + ciliumModule + `/pkg/version.ciliumVersion=` + c.version[1:] +
			` lab 2026-01-01T00:00:00+00:00"`,
		Packages: map[string]string{
			"cilium-agent":            ciliumModule + "/daemon",
			"cilium-cni":              ciliumModule + "/plugins/cilium-cni",
			"cilium-dbg":              ciliumModule + "/cilium-dbg",
			"cilium-health":           ciliumModule + "/cilium-health",
			"cilium-health-responder": ciliumModule + "/cilium-health/responder",
			"cilium-mount":            ciliumModule + "/tools/mount",
			"cilium-sysctlfix":        ciliumModule + "/tools/sysctlfix",
			"cilium-operator-generic": ciliumModule + "/operator",
			"hubble-relay":            ciliumModule + "/hubble-relay",
		},
		Also: c.requirements(),
		Stubs: map[string]string{"sigs.k8s.io/mcs-api/controllers": `package controllers

const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
`},
	}
}

// requirements returns modules in versions that the build needs. Older patch versions are built with the modules of
// CiliumVersion, so that all versions share most of what is compiled.
func (c cilium) requirements() []string {
	out := []string{"github.com/osrg/gobgp/v4@v4.7.0"}
	if c.version == CiliumVersion {
		return out
	}
	out = append(out, "cel.dev/expr@v0.25.2", "github.com/cilium/statedb@v0.8.4", "golang.org/x/text@v0.39.0",
		"golang.org/x/tools@v0.47.0", "google.golang.org/grpc@v1.83.1", "sigs.k8s.io/gateway-api/conformance@v1.6.2",
		"golang.org/x/telemetry@v0.0.0-20260625142307-59b4966ccb57")
	for _, name := range []string{
		"api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime", "client-go", "code-generator",
		"component-base", "endpointslice", "kubectl", "streaming",
	} {
		out = append(out, "k8s.io/"+name+"@v0.36.4")
	}
	return out
}

// images returns the images. There is no Envoy, so no rules for HTTP.
func (c cilium) images(parts imageParts) []imageSpec {
	programs := parts.program("usr/bin/cilium-agent", "usr/bin/cilium-dbg", "usr/bin/cilium-health",
		"usr/bin/cilium-health-responder", "usr/bin/cilium-mount", "usr/bin/cilium-sysctlfix", "opt/cni/bin/cilium-cni")
	programs.Links = map[string]string{"usr/bin/cilium": "cilium-dbg"}
	return []imageSpec{
		{Name: "cilium/cilium", Tag: c.version,
			Layers: []layerSpec{mergeLayers(parts.netfilter, parts.shell, parts.own), programs}},
		{Name: "cilium/operator-generic", Tag: c.version,
			Layers: []layerSpec{parts.program("usr/bin/cilium-operator-generic")}},
		{Name: "cilium/hubble-relay", Tag: c.version, Layers: []layerSpec{parts.program("usr/bin/hubble-relay")},
			Entrypoint: []string{"/usr/bin/hubble-relay"}},
	}
}

// layer returns a layer with what the agent calls, and the source of the eBPF programs that it compiles.
func (c cilium) layer(ctx context.Context, b *Builder) (layerSpec, error) {
	tools, err := ciliumTools(ctx)
	if err != nil {
		return tools, err
	}
	source, err := downloadModule(ctx, ciliumModule, c.version)
	if err != nil {
		return tools, err
	}
	scripts, err := b.ciliumScripts(ctx, c.version, source)
	if err != nil {
		return tools, err
	}
	datapath, err := folderLayer(filepath.Join(source, "bpf"), "var/lib/cilium/bpf", "tests", "complexity-tests")
	return mergeLayers(tools, scripts, datapath), err
}

// ciliumTools returns a layer with what the agent calls.
func ciliumTools(ctx context.Context) (layerSpec, error) {
	err := EnsurePackages(ctx, map[string]string{
		"/usr/bin/clang-19": "clang-19", "ipset": "ipset", "ip": "iproute2", "bash": "bash", "nsenter": "util-linux",
	})
	if err != nil {
		return layerSpec{}, err
	}
	layer := layerSpec{Files: map[string]string{}, Links: map[string]string{"usr/bin/clang": "clang-19"}}
	for _, name := range []string{"clang-19", "ipset", "ip", "tc", "bash", "nsenter", "mount"} {
		if err := addProgram(ctx, layer, name); err != nil {
			return layer, err
		}
	}
	for _, name := range []string{"basename", "dirname", "env", "find", "grep", "true", "umount"} {
		layer.Links["usr/bin/"+name] = "busybox"
	}
	return layer, nil
}

// ciliumScripts returns a layer with the scripts of cilium's image. Files in the module cache are not executable.
func (b *Builder) ciliumScripts(ctx context.Context, version, source string) (layerSpec, error) {
	scripts := []string{
		"images/cilium/init-container.sh", "plugins/cilium-cni/install-plugin.sh", "plugins/cilium-cni/cni-uninstall.sh",
	}
	layer := layerSpec{Files: map[string]string{}}
	dir, err := b.Cache.Entry(ctx, "scripts", "cilium-"+version, func(dir string) error {
		for _, script := range scripts {
			text, err := os.ReadFile(filepath.Join(source, script))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(script)), text, 0o755); err != nil {
				return err
			}
		}
		return nil
	})
	for _, script := range scripts {
		name := filepath.Base(script)
		layer.Files[name] = filepath.Join(dir, name)
	}
	return layer, err
}

// files returns the chart, as its project publishes it.
func (c cilium) files(ctx context.Context, b *Builder) ([]File, error) {
	source, err := downloadModule(ctx, ciliumModule, c.version)
	if err != nil {
		return nil, err
	}
	chart, err := folderLayer(filepath.Join(source, "install", "kubernetes", "cilium"), "cilium")
	if err != nil {
		return nil, err
	}
	local, err := b.writeArchive(ctx, path.Base(c.chartURL()), chart.Files)
	return []File{{URL: c.chartURL(), Local: local}}, err
}

// folderLayer returns a layer with the files of a local folder below the path, without some of its folders.
func folderLayer(folder, path string, without ...string) (layerSpec, error) {
	layer := layerSpec{Files: map[string]string{}}
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, file)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(without, relative):
			return fs.SkipDir
		case entry.Type().IsRegular():
			layer.Files[filepath.ToSlash(filepath.Join(path, relative))] = file
		}
		return nil
	})
	return layer, err
}
