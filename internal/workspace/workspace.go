// Package workspace is the operator's machine as the commands see it: manifests, Terraform's output, bundles, SSH keys,
// known hosts, backups, journals. It loads them and makes an engine of them. The engine itself reads no files.
package workspace

import (
	"context"
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
	"strings"
	"time"
)

// Options say which cluster to use, and how to reach it.
type Options struct {
	Manifest  string    // path
	Terraform string    // path, directory or "-"; "" for none
	Stdin     io.Reader // what "-" reads
	// Credentials is the path of a file with credentials that only its owner can read; "" for none.
	Credentials string

	Bundles []string // paths; empty if hosts download
	// BundleDir is a directory whose files *.tar are bundles too, whenever they appear; "" is none. Only ReleasesOf
	// reads it.
	BundleDir string
	// BundleSHA256 lists digests (hex) of the bundles' files, in any order; empty accepts any bundle.
	BundleSHA256 []string
	Digests      string // path of a list of digests that artifacts must match; "" for none
	// TrustSource accepts a mirror's or custom registry's digests that are not known.
	TrustSource    bool
	InsecureMirror bool // allows plain HTTP for the manifest's mirror
	// NewHosts is the policy for unknown host keys; a changed key stops everything.
	NewHosts host.Policy
	// AcceptHostKeys lists the hosts and bastions whose changed key is accepted: "HOST", if NewHosts shows it for
	// approval, or "HOST=SHA256:...".
	AcceptHostKeys []string
	Passphrase     func(keyFile string) ([]byte, error)
	Warn           func(message string) // nil drops warnings

	WithMachines bool // run the controllers of Machines in the cluster, whatever the manifest says

	Version  string // desired instead of the manifest's Kubernetes version, on the way to it
	Upgrade  UpgradeOptions
	Parallel int    // hosts busy at a time; 0 is the engine's default
	CAFile   string // the certificate of the cluster's CA, as PEM; "" is the CA that this machine knows, if any
	StateDir string // directory of known hosts and journals; "" is DefaultStateDir
	Now      func() time.Time
	Pool     sshpool.Options // settings of connections, for tests and benchmarks; the fields above override it
}

// Workspace is one cluster's files, loaded and ready for use. It does not change after Open and is safe for concurrent
// use. The caller closes it.
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

// Open loads the manifest and the bundles and prepares connections, but contacts no host yet. Errors in the files are
// *manifest.Problems, *engine.ConfigError or those of package host.
func Open(ctx context.Context, opt Options) (*Workspace, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Warn == nil {
		opt.Warn = func(string) {}
	}
	loaded, err := manifest.Load(ctx,
		manifest.Options{
			ManifestPath: opt.Manifest, TerraformPath: opt.Terraform, CredentialsPath: opt.Credentials,
			Stdin: opt.Stdin,
		})
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
	if err := w.addControllers(); err != nil {
		return &engine.ConfigError{Err: err}
	}
	w.pool = w.openPool()
	hosts, err := w.openHosts() //nolint:contextcheck // questions to ssh are bounded, and shared
	if err != nil {
		return err
	}
	if w.ca, err = openKnownCA(filepath.Join(w.stateDir, "ca"), w.opt.CAFile); err != nil {
		return &engine.ConfigError{Err: err}
	}
	w.Engine, err = engine.New(engine.Config{
		CA:   w.ca,
		Want: w.want, Manifest: string(w.loaded.ManifestText), Hosts: hosts, Approver: w.pool, Releases: w.releases,
		Files: apply.Files(w.loaded.Secrets.Files), Credentials: w.hostCredentials(),
		Holder: Holder(), Now: w.opt.Now, Parallel: w.opt.Parallel, RunHook: runHook(filepath.Dir(w.opt.Manifest)),
	})
	return err
}

// Close closes all connections.
func (w *Workspace) Close() {
	if w.pool != nil {
		_ = w.pool.Close() // errors of closing connections do not matter
	}
	if w.releases != nil {
		w.releases.Close()
	}
}

// Name returns the cluster's name.
func (w *Workspace) Name() string { return w.want.Name }

// Warnings returns warnings about the manifest.
func (w *Workspace) Warnings() []manifest.Problem { return w.loaded.Warnings }

// Manifest returns the manifest with defaults and Terraform's output, without secrets.
func (w *Workspace) Manifest() []byte { return w.loaded.ManifestText }

// Stats counts connections and commands so far.
func (w *Workspace) Stats() sshpool.Stats { return w.pool.Stats() }

// HostIDs returns the IDs of hosts that the operator names by hostname, address or ID. Flag is the option, for errors.
func (w *Workspace) HostIDs(flag string, names ...string) ([]string, error) {
	var ids []string
	for _, name := range names {
		h, ok := w.want.Host(name)
		if !ok {
			return nil, &engine.ConfigError{Err: fmt.Errorf("%s names %q, which is no host of %s; its hosts are %s",
				flag, name, w.opt.Manifest, strings.Join(hostNames(w.want), ", "))}
		}
		ids = append(ids, h.ID)
	}
	return ids, nil
}

// MemberNames returns the names of hosts, or of etcd members without one: a name of no host stays as it is.
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

// addControllers adds what is needed to run the controllers in the cluster, if desired. Their image contains this
// program, so that they know what the program that was applied last knows.
func (w *Workspace) addControllers() error {
	if !w.loaded.Controllers && !w.opt.WithMachines {
		return nil
	}
	if w.want.NoControllers {
		return fmt.Errorf("--with-machines, and machineController.deploy: false in %s: which is it?", w.opt.Manifest)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	arch, err := controllerimage.Arch(program)
	if err != nil {
		return fmt.Errorf("the controllers' image is made of this program: %w; run kubeone on a machine with Linux, "+
			"or kubeone controller outside the cluster", err)
	}
	image, err := controllerimage.New(program, arch)
	if err != nil {
		return fmt.Errorf("make the controllers' image: %w", err)
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
