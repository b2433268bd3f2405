// Package engine joins the stages: load, probe, decide, plan, apply. It holds no rule of its own. The commands call it,
// and so can anything else that wants a cluster to be as its manifest says.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"kubeone/internal/addons"
	"kubeone/internal/desired"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/manifest"
	"kubeone/internal/release"
)

// Options say which cluster, and how it is reached.
type Options struct {
	Manifest  string    // path
	Terraform string    // path, directory or "-"; "" for none
	Stdin     io.Reader // what "-" reads

	Bundles []string // paths; empty when hosts download
	// NewHosts says what happens with host keys that nobody knows; a changed key stops everything.
	NewHosts   host.Policy
	Passphrase func(keyFile string) ([]byte, error)
	Warn       func(message string)

	Limit        []string // host names, addresses or IDs that may be acted on; empty means all
	Selector     string   // of Node labels; of the hosts that may be acted on, those that it matches
	ForceUpgrade bool
	Version      string // wanted in place of the manifest's Kubernetes version, on the way to it
	Upgrade      UpgradeOptions
	LookOnly     bool   // nothing will be installed: what that would take is not asked for
	Parallel     int    // hosts busy at a time; 0 is 32
	StateDir     string // where known hosts and journals are; "" is DefaultStateDir
	Now          func() time.Time
	// NetDial replaces the dialling of hosts, in tests and benchmarks.
	Pool sshpool.Options
}

// Engine is one cluster, loaded and ready to be looked at. Its methods are not for concurrent use. Close it.
type Engine struct {
	opt     Options
	loaded  manifest.Loaded
	want    desired.Cluster
	limit   map[string]bool
	pool    *sshpool.Pool
	hosts   map[string]host.Host
	bundle  *release.Library
	addons  []addons.Addon
	addonOf map[string]string // digest by name
	system  map[string]string // image of what kubeadm applies, by its pods' app
}

// Open loads the manifest and the bundle and prepares the connections; it asks nothing of any host yet.
func Open(ctx context.Context, opt Options) (*Engine, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Warn == nil {
		opt.Warn = func(string) {}
	}
	if opt.Parallel == 0 {
		opt.Parallel = 32
	}
	loaded, err := manifest.Load(ctx, manifest.Options{ManifestPath: opt.Manifest, TerraformPath: opt.Terraform, Stdin: opt.Stdin})
	if err != nil {
		return nil, err
	}
	e := &Engine{opt: opt, loaded: loaded, want: loaded.Cluster, hosts: map[string]host.Host{}}
	for _, open := range []func() error{e.override, e.openLimit, e.openAddons, e.openBundle, e.openPool} {
		if err := open(); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

// Close ends all connections.
func (e *Engine) Close() {
	if e.pool != nil {
		_ = e.pool.Close() // nothing depends on how a connection ends
	}
	if e.bundle != nil {
		_ = e.bundle.Close()
	}
}

// Want is the cluster as the manifest wants it.
func (e *Engine) Want() desired.Cluster { return e.want }

// Warnings are what the manifest's author should know.
func (e *Engine) Warnings() []manifest.Problem { return e.loaded.Warnings }

// Manifest is the manifest with defaults and Terraform's output, without secrets.
func (e *Engine) Manifest() []byte { return e.loaded.ManifestText }

// Stats counts connections and commands so far.
func (e *Engine) Stats() sshpool.Stats { return e.pool.Stats() }

// Host is a host of the manifest.
func (e *Engine) Host(id string) host.Host { return e.hosts[id] }

func (e *Engine) openLimit() error {
	if len(e.opt.Limit) == 0 {
		return nil
	}
	e.limit = map[string]bool{}
	for _, name := range e.opt.Limit {
		h, err := e.named(name, "--limit")
		if err != nil {
			return err
		}
		e.limit[h.ID] = true
	}
	return nil
}

// named finds a host of the manifest by what a person calls it.
func (e *Engine) named(name, flag string) (desired.Host, error) {
	h, ok := e.want.Host(name)
	if !ok {
		return h, &ConfigError{fmt.Errorf("%s names %q, which is no host of %s; its hosts are %s", flag, name, e.opt.Manifest, strings.Join(hostNames(e.want), ", "))}
	}
	return h, nil
}

func hostNames(want desired.Cluster) []string {
	var out []string
	for _, h := range want.Hosts() {
		if h.Hostname != "" {
			out = append(out, h.Hostname)
		} else {
			out = append(out, h.ID)
		}
	}
	return out
}

func (e *Engine) openAddons() error {
	names, err := release.Names(e.release("amd64"))
	if err != nil {
		return &ConfigError{err}
	}
	// Image names are the same for every architecture, and known before any digest.
	want := e.want
	want.Artifacts = map[string]desired.Artifacts{names.Arch: names}
	e.system = systemImages(names)
	rendered, err := addons.Render(want)
	if err != nil {
		return &ConfigError{err}
	}
	e.addons, e.addonOf = rendered, map[string]string{}
	for _, a := range rendered {
		e.addonOf[a.Name] = a.Digest
	}
	return nil
}

// openBundle opens the bundles, if there are any.
func (e *Engine) openBundle() error {
	if len(e.opt.Bundles) == 0 {
		return nil
	}
	bundle, err := release.OpenLibrary(e.opt.Bundles...)
	if err != nil {
		return &ConfigError{err}
	}
	e.bundle = bundle
	return nil
}

// ConfigError is a mistake in what the operator gave: manifest, flags, bundle. Nothing was changed.
type ConfigError struct{ Err error }

// Error is the cause's text.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// DefaultStateDir is $KUBEONE_STATE, else kubeone in the user's state directory (XDG).
func DefaultStateDir() (string, error) {
	if dir := os.Getenv("KUBEONE_STATE"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "kubeone"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for known hosts and journals: %w; set KUBEONE_STATE", err)
	}
	return filepath.Join(home, ".local", "state", "kubeone"), nil
}

// StateDir is this cluster's directory on the operator's machine.
func (e *Engine) StateDir() (string, error) {
	base := e.opt.StateDir
	if base == "" {
		var err error
		if base, err = DefaultStateDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(base, e.want.Name), nil
}

// Holder is who we are in locks and records: "user@machine".
func Holder() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "unknown"
	}
	return name + "@" + machine
}

// artifacts makes sure that what is needed to install hosts of these architectures is known, with digests.
func (e *Engine) artifacts(ctx context.Context, archs []string) error {
	if e.want.Artifacts == nil {
		e.want.Artifacts = map[string]desired.Artifacts{}
	}
	for _, arch := range archs {
		if _, known := e.want.Artifacts[arch]; known {
			continue
		}
		a, err := e.resolve(ctx, e.release(arch))
		if err != nil {
			return err
		}
		e.want.Artifacts[arch] = a
	}
	return nil
}

// release is what is wanted of the release for one architecture.
func (e *Engine) release(arch string) release.Want {
	return release.Want{
		KubernetesVersion: e.want.KubernetesVersion, Arch: arch, CNI: e.want.Network.CNI.Name, KubeProxy: !e.want.Network.KubeProxy.Skip,
		OverwriteRegistry: e.want.Registry.Overwrite, Insecure: e.want.Registry.Insecure,
	}
}

func (e *Engine) resolve(ctx context.Context, want release.Want) (desired.Artifacts, error) {
	if e.bundle != nil {
		a, err := e.bundle.For(want)
		if err != nil {
			return desired.Artifacts{}, &ConfigError{err}
		}
		a.Pushed = true
		return a, nil
	}
	source := release.Source{Mirror: e.loaded.Mirror}
	if dir, err := release.DefaultCacheDir(); err == nil {
		source.CacheDir = dir
	}
	a, err := release.Resolve(ctx, source, want)
	var unsupported *release.UnsupportedError
	if errors.As(err, &unsupported) {
		return a, &ConfigError{err}
	}
	return a, err
}
