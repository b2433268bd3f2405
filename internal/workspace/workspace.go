// Package workspace represents the operator's machine: manifests, the Terraform output, bundles, SSH keys, known hosts,
// backups and journals. It loads these files and creates an engine from them. The engine itself does not read files.
package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"kubeone/internal/apply"
	"kubeone/internal/engine"
	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/machines/controllerimage"
	"kubeone/internal/manifest"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options say which cluster to use, and how to connect to it.
type Options struct {
	Manifest string // path
	// Objects are a Cluster and its Machines as an API has them, in place of the file Manifest, which then is only their
	// name. What is in files of the operator's machine is then unknown: addons, Helm releases, credentials and hooks.
	Objects   []byte
	Terraform string    // path, directory or "-"; "" for none
	Stdin     io.Reader // read for "-"
	// Credentials is the path of a credentials file, which only its owner may be able to read; "" means none.
	Credentials string

	Bundles []string // paths; empty if hosts download
	// BundleDir is a directory whose files *.tar are also used as bundles, even if they appear later. "" means none. Only
	// ReleaseOpener reads it.
	BundleDir string
	// BundleSHA256 lists the digests (hex) of the bundle files, in any order. An empty list accepts any bundle.
	BundleSHA256 []string
	Digests      string // path of a list of digests that artifacts must match; "" for none
	// TrustSource accepts digests from a mirror or custom registry even if they are not known.
	TrustSource    bool
	InsecureMirror bool // allow plain HTTP for the mirror
	// NewHosts is the policy for unknown host keys. A changed key is always an error.
	NewHosts host.Policy
	// AcceptHostKeys lists the hosts and bastions whose changed key is accepted: "HOST=SHA256:...", or "HOST" if NewHosts
	// shows the key for approval.
	AcceptHostKeys []string
	Passphrase     func(keyFile string) ([]byte, error)
	Warn           func(message string) // nil drops warnings

	WithMachines bool // run the Machine controllers in the cluster even if the manifest does not ask for it

	Version  string // desired Kubernetes version for a partial upgrade; "" means that in the manifest
	Upgrade  UpgradeOptions
	Parallel int    // maximum number of hosts at a time; 0 means the default of the engine
	CAFile   string // certificate of the cluster CA, as PEM; "" means the CA that this machine knows
	StateDir string // directory for known hosts and journals; "" means DefaultStateDir
	Now      func() time.Time
	Pool     sshpool.Options // connection settings for tests and benchmarks; the fields above override them
}

// Workspace holds the loaded files of one cluster and an engine for it. It does not change after Open and is safe for
// concurrent use. The caller must close it.
type Workspace struct {
	Engine *engine.Engine

	opt      Options
	loaded   manifest.Loaded
	want     desired.Cluster
	stateDir string
	ca       *knownCA
	pool     *sshpool.Pool
	releases *releases
}

// Open loads the manifest and the bundles and prepares connections, but does not connect to hosts yet. Errors in the
// files are *manifest.Problems, *engine.ConfigError, or errors of package host.
func Open(ctx context.Context, opt Options) (*Workspace, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Warn == nil {
		opt.Warn = func(string) {}
	}
	from := manifest.Options{
		ManifestPath: opt.Manifest, TerraformPath: opt.Terraform, CredentialsPath: opt.Credentials,
		ReadAddons: opt.Objects == nil, NoFiles: opt.Objects != nil, Stdin: opt.Stdin,
	}
	if opt.Objects != nil {
		from.ManifestReader = bytes.NewReader(opt.Objects)
	}
	loaded, err := manifest.Load(ctx, from)
	if err == nil && opt.Objects != nil {
		err = checkStoredObjects(loaded)
	}
	if err != nil {
		return nil, err
	}
	w := &Workspace{opt: opt, loaded: loaded, want: loaded.Cluster}
	if err := w.openManifest(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Workspace) openManifest(ctx context.Context) (err error) {
	if err := w.overrideManifest(); err != nil {
		return &engine.ConfigError{Err: err}
	}
	if w.stateDir, err = stateDir(w.opt.StateDir, w.want.Name); err != nil {
		return err
	}
	if w.releases, err = openReleases(ctx, w.opt, w.loaded.Mirror); err != nil {
		return &engine.ConfigError{Err: err}
	}
	if err := w.releases.preparePublished(ctx, w.want); err != nil {
		return err
	}
	if err := w.addControllers(); err != nil {
		return &engine.ConfigError{Err: err}
	}
	w.pool = w.openPool()
	hosts, err := w.openHosts() //nolint:contextcheck // calls of ssh have a timeout and share results
	if err != nil {
		return err
	}
	if w.ca, err = openKnownCA(filepath.Join(w.stateDir, "ca"), w.opt.CAFile); err != nil {
		return &engine.ConfigError{Err: err}
	}
	credentials := w.hostCredentials()
	if w.opt.Objects != nil && w.opt.Credentials == "" {
		credentials = nil
	}
	w.Engine, err = engine.New(engine.Config{
		CA:   w.ca,
		Want: w.want, Manifest: string(w.loaded.ManifestText), Hosts: hosts, Approver: w.pool, Releases: w.releases,
		Files: apply.Files(w.loaded.Secrets.Files), Addons: w.loaded.Addons, Credentials: credentials,
		Holder: Holder(), Now: w.opt.Now, Parallel: w.opt.Parallel, RunHook: newHookRunner(filepath.Dir(w.opt.Manifest)),
	})
	return err
}

// checkStoredObjects returns an error if stored objects need a file of an operator's machine.
func checkStoredObjects(loaded manifest.Loaded) error {
	if a := loaded.Written.Addons; a != nil && a.Path != "" {
		return &engine.ConfigError{Err: fmt.Errorf("addons.path is %s, a folder on an operator's machine: kubeone apply "+
			"must carry out this cluster, or remove addons.path", a.Path)}
	}
	if hooks := loaded.Cluster.Hooks; slices.ContainsFunc(hooks, func(h desired.Hook) bool { return !h.OnHost }) {
		return &engine.ConfigError{Err: errors.New("a hook runs on the operator's machine: use runOn: host, or carry out " +
			"this cluster with kubeone apply")}
	}
	return nil
}

// Close closes all connections.
func (w *Workspace) Close() {
	if w.pool != nil {
		_ = w.pool.Close() // errors can be ignored here
	}
	if w.releases != nil {
		w.releases.Close()
	}
}

// Name returns the name of the cluster.
func (w *Workspace) Name() string { return w.want.Name }

// Warnings returns warnings about the manifest.
func (w *Workspace) Warnings() []manifest.Problem { return w.loaded.Warnings }

// Manifest returns the effective manifest: with defaults and the Terraform output, without secrets.
func (w *Workspace) Manifest() []byte { return w.loaded.ManifestText }

// Stats returns the number of connections and commands so far.
func (w *Workspace) Stats() sshpool.Stats { return w.pool.Stats() }

// HostIDs returns the IDs of hosts given by hostname, address or ID. flag is the name of the option, for errors.
func (w *Workspace) HostIDs(flag string, names ...string) ([]string, error) {
	var ids []string
	for _, name := range names {
		h, ok := w.want.Host(name)
		if !ok {
			return nil, &engine.ConfigError{Err: fmt.Errorf("%s names %q, which is not a host in %s; its hosts are %s",
				flag, name, w.opt.Manifest, strings.Join(hostNames(w.want), ", "))}
		}
		ids = append(ids, h.ID)
	}
	return ids, nil
}

// MemberNames returns the etcd member names for the given names. For the name of a host, it returns the ID of the host.
// Other names stay unchanged, because an etcd member may have no host.
func (w *Workspace) MemberNames(names ...string) []string {
	var out []string
	for _, name := range names {
		if h, ok := w.want.Host(name); ok {
			name = h.ID
		}
		out = append(out, name)
	}
	return out
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

// addControllers adds the image and the bundles for running the Machine controllers in the cluster, if that is desired.
// The image contains this program, so the controllers have the same version as the last apply.
func (w *Workspace) addControllers() error {
	if !w.loaded.Controllers && !w.opt.WithMachines {
		return nil
	}
	if w.want.NoControllers {
		return fmt.Errorf("--with-machines contradicts machineController.deploy: false in %s: remove one of them",
			w.opt.Manifest)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	arch, err := controllerimage.Arch(program)
	if err != nil {
		return fmt.Errorf("cannot build the controller image from this kubeone binary: %w; run kubeone on a Linux "+
			"machine, or run kubeone controller outside the cluster", err)
	}
	image, err := controllerimage.New(program, arch)
	if err != nil {
		return fmt.Errorf("build the controller image: %w", err)
	}
	want := desired.Image{Name: image.Name, Source: image.Name, Digest: image.Digest, Blobs: image.Blobs, Known: true}
	index, _, err := release.ImageIndex([]desired.Image{want}, arch)
	if err != nil {
		return err
	}
	w.want.Controllers = &desired.Controllers{Image: want, Arch: arch, Index: string(index)}
	w.releases.image = image
	if w.releases.bundles != nil {
		w.want.Controllers.Bundles, err = w.releases.bundles.Files()
	}
	return err
}
