// Package components makes all components of a Kubernetes cluster: Kubernetes itself, etcd, containerd, runc, CNI
// plugins, a network plugin, CoreDNS, pause. It downloads programs from their projects, or builds them from Go modules
// when a location does not answer. A Cache keeps each version. A Mirror serves it under the projects' paths, and as an
// image registry.
package components

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"

	"kubeone/test/lab/progress"
)

// Builder makes components in its cache. It is safe for concurrent use, also by several processes.
type Builder struct {
	Cache Cache
	// Log receives progress, and may be nil.
	Log progress.Logf
	// Downloads is the prefix of a Download's URL: "https://", or the address of a Mirror and a slash. With "none",
	// everything is built from source.
	Downloads string
	// CNI is the network plugin; NewBuilder sets DefaultCNI.
	CNI string
	// Addons are the names of addons of kubeone whose images are also made.
	Addons []string

	mu          sync.Mutex
	unreachable map[string]error
}

// NewBuilder returns a builder that downloads from $KUBEONE_LAB_DOWNLOADS, by default from the official locations.
func NewBuilder(cache Cache, log progress.Logf) *Builder {
	return &Builder{Cache: cache, Log: log, Downloads: downloadsFromEnvironment(), CNI: DefaultCNI}
}

// Set is a complete, built set of components for one Kubernetes version.
type Set struct {
	// KubernetesVersion is without a leading v.
	KubernetesVersion string
	// Bin maps each program's name to its local file.
	Bin map[string]string
	// Files are downloads, Images are OCI layouts.
	Files  []File
	Images []Image
	// Digest identifies the set's content.
	Digest string
}

// File is a download: URL is its location without the scheme, Local the local file.
type File struct{ URL, Local string }

// Image is an image at Name:Tag in the registry, stored as an OCI layout in the folder Layout.
type Image struct{ Name, Tag, Layout string }

// Ref is Name:Tag.
func (i Image) Ref() string { return i.Name + ":" + i.Tag }

// step is a part of a build with its own progress messages.
type step struct {
	name string
	run  func(ctx context.Context) error
}

// Build builds what the cache lacks for a Kubernetes version, given without a leading v.
func (b *Builder) Build(ctx context.Context, version string) (*Set, error) {
	version = strings.TrimPrefix(version, "v")
	if strings.Count(version, ".") != 2 {
		return nil,
			fmt.Errorf("version %q of Kubernetes: want three numbers, as in %s", version, DefaultKubernetesVersion)
	}
	plugin, err := findNetworkPlugin(b.CNI)
	if err != nil {
		return nil, err
	}
	set := &Set{KubernetesVersion: version, Bin: map[string]string{}}
	var want wishes
	compile := func(recipe func() Recipe) func(context.Context) error {
		return func(ctx context.Context) error { return b.compileRecipe(ctx, set, recipe()) }
	}
	kubernetes := kubernetesRecipe(version)
	steps := []step{
		{"Kubernetes v" + version, func(ctx context.Context) error {
			if err := b.compileRecipe(ctx, set, kubernetes); err != nil {
				return err
			}
			var err error
			want, err = b.askKubeadm(ctx, version, filepath.Dir(set.Bin["kubeadm"]))
			return err
		}},
		{"containerd " + ContainerdVersion(version),
			compile(func() Recipe { return containerdRecipe(ContainerdVersion(version)) })},
		{"runc " + RuncVersion, compile(runcRecipe)},
		{"CNI plugins " + CNIPluginsVersion, compile(cniRecipe)},
		{"etcd", func(ctx context.Context) error { return b.compileRecipe(ctx, set, etcdRecipe(want.EtcdVersion)) }},
		{"CoreDNS", func(ctx context.Context) error {
			return b.compileRecipe(ctx, set,
				coreDNSRecipe(want.CoreDNSBuilt))
		}},
		{"pause", func(ctx context.Context) error { return b.addPause(ctx, set) }},
	}
	for _, recipe := range slices.Concat(plugin.cni, plugin.recipes) {
		steps = append(steps, step{recipe.Name + " " + recipe.Version, compile(func() Recipe { return recipe })})
	}
	steps = append(steps,
		step{"images", func(ctx context.Context) error { return b.addImages(ctx, set, want, plugin) }},
		step{"images of addons", func(ctx context.Context) error { return b.addAddonImages(ctx, set) }},
		step{"archives", func(ctx context.Context) error { return b.addFiles(ctx, set, want, plugin) }})
	title := "components of Kubernetes v" + version
	if err := b.runSteps(ctx, title, steps); err != nil {
		return nil, fmt.Errorf("%s: %w", title, err)
	}
	set.Digest = set.computeDigest()
	return set, nil
}

func (b *Builder) runSteps(ctx context.Context, title string, steps []step) error {
	for n, step := range steps {
		what := fmt.Sprintf("%s, %d of %d: %s", title, n+1, len(steps), step.name)
		if err := b.Log.During(what, func() error { return step.run(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// compileRecipe builds a recipe and records the paths of its programs.
func (b *Builder) compileRecipe(ctx context.Context, set *Set, recipe Recipe) error {
	dir, err := b.binariesDir(ctx, recipe)
	if err != nil {
		return err
	}
	for name := range recipe.Packages {
		set.Bin[binKey(recipe, name)] = filepath.Join(dir, name)
	}
	return nil
}

// binKey distinguishes the CNI plugins from programs of the same name.
func binKey(recipe Recipe, name string) string {
	if strings.Contains(recipe.Module, "containernetworking/plugins") {
		return "cni/" + name
	}
	return name
}

func (b *Builder) addPause(ctx context.Context, set *Set) error {
	dir, err := b.pauseBinary(ctx)
	set.Bin["pause"] = filepath.Join(dir, "pause")
	return err
}

// computeDigest identifies the content by the cache keys at the end of the paths. They do not depend on the location of
// the cache.
func (s *Set) computeDigest() string {
	var keys []string
	for _, file := range s.Files {
		keys = append(keys, file.URL+" "+filepath.Base(filepath.Dir(file.Local)))
	}
	for _, image := range s.Images {
		keys = append(keys, image.Ref()+" "+filepath.Base(image.Layout))
	}
	return digestOf("set v1", runtime.GOARCH, sortWords(keys))
}

func sortWords(words []string) []string {
	sort.Strings(words)
	return words
}
