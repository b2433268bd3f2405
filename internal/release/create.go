package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"kubeone/internal/addons/embedded"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/model/desired"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CreateOptions holds settings for creating a bundle. They do not affect which release it contains.
type CreateOptions struct {
	// Workloads are added to the release.
	Workloads Workloads
	// CreatedBy is the program and its version. It is recorded in the bundle.
	CreatedBy string
	// SpoolDir is a directory for parts that wait to be written; "" means the temporary directory of the system. At most
	// eight parts wait at a time. The largest parts have about 100 MB.
	SpoolDir string
	// Progress is called frequently while data arrives, one call at a time. nil disables the callback.
	Progress func(Progress)
}

// Progress is the progress of creating a bundle.
type Progress struct {
	Done                  string // the part that was just written; "" if only the number of bytes changed
	Entries, TotalEntries int
	Bytes, TotalBytes     int64
}

// Created describes a bundle that was written.
type Created struct {
	Index
	SHA256 string // hex, of the whole file
}

// CreateFile is like Create, and writes the bundle to path atomically.
func CreateFile(ctx context.Context, path string, src Source, want Want, o CreateOptions) (Created, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".partial-*")
	if err != nil {
		return Created{}, fmt.Errorf("create bundle %s: %w", path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // fails after a successful rename
	if o.SpoolDir == "" {
		o.SpoolDir = filepath.Dir(path)
	}
	hash := sha256.New()
	index, err := Create(ctx, io.MultiWriter(temp, hash), src, want, o)
	if err == nil {
		err = publishFile(temp, path)
	}
	_ = temp.Close()
	if err != nil {
		return Created{}, fmt.Errorf("create bundle %s: %w", path, err)
	}
	return Created{Index: index, SHA256: hex.EncodeToString(hash.Sum(nil))}, nil
}

// publishFile renames a complete temporary file to its final path.
func publishFile(temp *os.File, path string) error {
	if err := temp.Chmod(0o644); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// Create writes a bundle with the desired release to w. The same content and options produce the same bytes from any
// source, because names and locations in a bundle are the official ones. Create does not use the cache, so it fetches
// all digests.
//
// The error is one of those from Resolve, a *DigestError if content does not match its digest, or one from w. After an
// error, the data in w is not a valid bundle.
func Create(ctx context.Context, w io.Writer, src Source, want Want, o CreateOptions) (Index, error) {
	src.CacheDir = ""
	r, err := newResolver(src, want)
	if err != nil {
		return Index{}, err
	}
	if err := r.addWorkloads(o.Workloads); err != nil {
		return Index{}, err
	}
	artifacts, contents, err := r.resolveContents(ctx)
	if err != nil {
		return Index{}, err
	}
	index := Index{
		Format: FormatVersion, KubernetesVersion: want.KubernetesVersion, Arch: want.Arch, CNI: want.CNI,
		KubeProxy: want.KubeProxy, CreatedBy: o.CreatedBy, Artifacts: artifacts,
	}
	for _, c := range contents {
		index.Entries = append(index.Entries, c.Entry)
	}
	dir, err := os.MkdirTemp(o.SpoolDir, ".kubeone-bundle-*")
	if err != nil {
		return Index{}, fmt.Errorf("make a directory for parts of the bundle: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := index.writeBundle(ctx, w, &spool{dir: dir, pause: src.retryPause(), contents: contents},
		o.Progress); err != nil {
		return Index{}, err
	}
	return index, nil
}

// writeBundle writes the complete tar.
func (i Index) writeBundle(ctx context.Context, w io.Writer, parts *spool, progress func(Progress)) error {
	indexJSON, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode %s: %w", indexName, err)
	}
	count := &progressReporter{callback: progress, now: Progress{TotalEntries: len(i.Entries), TotalBytes: i.Size()}}
	parts.count = count.addBytes
	if err := writeEntry(w, indexName, indexJSON); err != nil {
		return err
	}
	err = parts.forEach(ctx, func(c content, file io.Reader) error {
		if err := writeStream(w, c.Name(), c.Size, file); err != nil {
			return err
		}
		count.addEntry(c.Holds)
		return nil
	})
	if err != nil {
		return err
	}
	if err := writeEntry(w, trailerName, []byte(trailerText(indexJSON))); err != nil {
		return err
	}
	_, err = w.Write(make([]byte, endSize))
	return err
}

// Want describes the desired release.
type Want struct {
	KubernetesVersion string // of the cluster, without v: "1.36.3"
	// Kubelet is the kubelet version if it differs from the cluster version, as on a worker that lags behind.
	Kubelet string
	// Containerd is the containerd version, without v. "" means the default of this program or, with bundles, the version
	// in a bundle for the desired Kubernetes version.
	Containerd string
	Arch       string       // as Go names it: "amd64"
	Role       desired.Role // of the hosts; "" means all roles
	// CNI is the network plugin whose binaries and images are included. An unknown name includes none.
	CNI string
	// CNIVersion is the version of the network plugin, without v. "" means the plugin's default.
	CNIVersion string
	KubeProxy  bool
	// Addons are the names of the addons of kubeone whose images are included, separated by commas. An unknown name
	// includes none.
	Addons string
	// OverwriteRegistry is the registry for all images, as HOST[:PORT][/PREFIX]. "" means the registry in the official
	// name of each image.
	OverwriteRegistry string
	// DNSRepository is the location of the image coredns, as HOST[:PORT][/PATH]. "" means the registry of the other
	// images.
	DNSRepository string
	// Insecure allows plain HTTP and untrusted certificates, but only for the host of OverwriteRegistry.
	Insecure bool
}

// The hosts of the official locations.
const (
	hostKubernetes = "dl.k8s.io"
	hostGitHub     = "github.com"
	registryK8s    = "registry.k8s.io"
)

// file is one binary of a release and its official location.
type file struct {
	name, version string
	host, path    string // https://HOST/PATH
	sums          string // path of the file with its digest
	archive       bool
	optional      bool // left out if it is not at the source
	exact         bool // no other version is accepted
}

// atVersion returns the same file in another version. It replaces the version in the paths. This is safe, because file
// names contain nothing else that looks like the version.
func (f file) atVersion(version string) file {
	f.path, f.sums = strings.ReplaceAll(f.path, f.version, version), strings.ReplaceAll(f.sums, f.version, version)
	f.version = version
	return f
}

// newClaim returns a claim about the file.
func (f file) newClaim(sum, source string) Claim {
	return Claim{What: f.name + " " + f.version, Name: f.host + "/" + f.path, SHA256: sum, Source: source}
}

// newImageClaim returns a claim about the manifest of an image for an architecture.
func newImageClaim(official, arch, digest, source string) Claim {
	return Claim{
		What: "image " + official, Name: official + " linux/" + arch, SHA256: strings.TrimPrefix(digest, digestPrefix),
		Source: source,
	}
}

// image is one container image of a release and its official location.
type image struct {
	registry, repository, tag string // a tag that begins with "sha256:" is a digest
	roles                     []desired.Role
	exact                     bool // no other tag is accepted
	unmoved                   bool // always pulled from this registry
}

// officialName returns the full name of the image in its official registry.
func (i image) officialName() string { return i.nameIn(i.registry) }

// nameIn returns the full name of the image in a registry.
func (i image) nameIn(registry string) string {
	if strings.HasPrefix(i.tag, digestPrefix) {
		return fmt.Sprintf("%s/%s@%s", registry, i.repository, i.tag)
	}
	return fmt.Sprintf("%s/%s:%s", registry, i.repository, i.tag)
}

// imageLocation returns the full name under which hosts pull the image.
func (w Want) imageLocation(i image) string {
	if i.unmoved {
		return i.officialName()
	}
	return w.clusterName(i.officialName())
}

// clusterName converts an official image name to the name that the cluster uses.
func (w Want) clusterName(official string) string {
	if tag, ok := strings.CutPrefix(official, registryK8s+"/"+dnsImage+":"); ok && w.DNSRepository != "" {
		return w.DNSRepository + "/coredns:" + tag
	}
	if w.OverwriteRegistry != "" {
		return renameHost(official, w.OverwriteRegistry)
	}
	return official
}

// usesOtherRegistry reports whether an image may come from a registry other than its official one. This includes an
// insecure official registry, because anyone on the network could impersonate it.
func (w Want) usesOtherRegistry(i image) bool {
	return w.imageLocation(i) != i.officialName() || w.allowsInsecure(i)
}

// imageCacheKey returns how an image is fetched, as a part of cache keys.
func (w Want) imageCacheKey(i image) string {
	switch {
	case w.allowsInsecure(i):
		return fetchInsecure
	case w.usesOtherRegistry(i):
		return fetchElsewhere
	}
	return fetchOfficial
}

// allowsInsecure reports whether the registry of the image may use plain HTTP or an untrusted certificate.
func (w Want) allowsInsecure(i image) bool {
	host, _, _ := strings.Cut(w.imageLocation(i), "/")
	overwrite, _, _ := strings.Cut(w.OverwriteRegistry, "/")
	return w.Insecure && host == overwrite
}

// dnsImage is the repository of the cluster DNS image in its official registry.
const dnsImage = "coredns/coredns"

// releaseFiles returns the binaries in the release.
func (w Want) releaseFiles(v Versions) []file {
	containerd := githubArchive(desired.BinaryContainerd, v.Containerd, "containerd/containerd",
		"containerd-"+v.Containerd+"-linux-"+w.Arch+".tar.gz", ".sha256sum")
	containerd.exact = w.Containerd != ""
	out := []file{
		w.kubernetesFile(desired.BinaryKubelet, cmp.Or(w.Kubelet, w.KubernetesVersion)),
		w.kubernetesFile(desired.BinaryKubeadm, w.KubernetesVersion),
	}
	if w.Role != desired.Worker {
		out = append(out, w.kubernetesFile(desired.BinaryKubectl, w.KubernetesVersion))
	}
	out = append(out,
		containerd,
		runcFile(v.Runc, w.Arch),
		githubArchive(desired.BinaryCNI, v.CNIPlugins, "containernetworking/plugins",
			"cni-plugins-linux-"+w.Arch+"-v"+v.CNIPlugins+".tgz", ".sha256"),
	)
	if plugin, ok := plugins.Find(w.CNI, w.CNIVersion); ok {
		for _, b := range plugin.Binaries() {
			out = append(out, githubArchive(b.Name, b.Version, b.Project, b.AssetFor(w.Arch), b.Sums))
		}
	}
	crictl := githubArchive(desired.BinaryCrictl, v.Crictl, "kubernetes-sigs/cri-tools",
		"crictl-v"+v.Crictl+"-linux-"+w.Arch+".tar.gz", ".sha256")
	crictl.optional = true
	return append(out, crictl)
}

func (w Want) kubernetesFile(name, version string) file {
	path := fmt.Sprintf("release/v%s/bin/linux/%s/%s", version, w.Arch, name)
	return file{name: name, version: version, host: hostKubernetes, path: path, sums: path + ".sha256", exact: true}
}

// githubArchive returns an archive in a GitHub release. Its digest is in a separate file.
func githubArchive(name, version, project, asset, sumSuffix string) file {
	path := fmt.Sprintf("%s/releases/download/v%s/%s", project, version, asset)
	return file{name: name, version: version, host: hostGitHub, path: path, sums: path + sumSuffix, archive: true}
}

// runcFile returns the runc binary. A single file contains the digests for all architectures.
func runcFile(version, arch string) file {
	dir := "opencontainers/runc/releases/download/v" + version + "/"
	return file{
		name: desired.BinaryRunc, version: version, host: hostGitHub, path: dir + "runc." + arch,
		sums: dir + "runc.sha256sum",
	}
}

// releaseImages returns the container images in the release.
func (w Want) releaseImages(v Versions) []image {
	controlPlane := []desired.Role{desired.ControlPlane}
	tag := "v" + w.KubernetesVersion
	out := []image{
		{registryK8s, "kube-apiserver", tag, controlPlane, true, false},
		{registryK8s, "kube-controller-manager", tag, controlPlane, true, false},
		{registryK8s, "kube-scheduler", tag, controlPlane, true, false},
		{registryK8s, "etcd", v.Etcd, controlPlane, false, false},
	}
	if w.KubeProxy {
		out = append(out, image{registryK8s, "kube-proxy", tag, nil, true, false})
	}
	out = append(out, image{registryK8s, "pause", v.Pause, nil, false, false},
		image{registryK8s, dnsImage, v.CoreDNS, nil, false, false})
	if plugin, ok := plugins.Find(w.CNI, w.CNIVersion); ok {
		isPublished := len(plugins.Published(w.CNI, w.CNIVersion)) > 0
		for _, i := range plugin.Images() {
			out = append(out, image{i.Registry, i.Repository, i.Tag, nil, isPublished, false})
		}
	}
	for _, i := range embedded.Images(strings.Split(w.Addons, ",")...) {
		out = append(out, image{i.Registry, i.Repository, i.Tag, nil, true, false})
	}
	return slices.DeleteFunc(out, func(i image) bool {
		return w.Role != "" && len(i.roles) > 0 && !slices.Contains(i.roles, w.Role)
	})
}
