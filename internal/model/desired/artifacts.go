package desired

// Artifacts lists everything that is installed on hosts of one architecture for one Kubernetes version, with the
// digests to check it against before use. It comes with the plan and is part of the plan's digest.
type Artifacts struct {
	KubernetesVersion string   `json:"kubernetesVersion"` // without v
	Arch              string   `json:"arch"`
	Binaries          []Binary `json:"binaries"`
	Images            []Image  `json:"images"`
	// Pushed says that the operator's machine has the content in a bundle and uploads it over SSH. Otherwise each host
	// downloads from the URLs and registries.
	Pushed bool `json:"pushed"`
	// Published are the manifests from which addons are made.
	Published []PublishedManifest `json:"published,omitempty"`
	// Charts are the charts of Helm releases. Hosts do not need them.
	Charts []BundledChart `json:"charts,omitempty"`
}

// BundledChart is a chart in a bundle. It has either a URL or a RepoURL, as chart.Source has, without credentials.
type BundledChart struct {
	URL     string `json:"url,omitempty"`
	RepoURL string `json:"repoURL,omitempty"`
	Name    string `json:"name"`
	Version string `json:"version"` // as in Chart.yaml
	SHA256  string `json:"sha256"`  // hex, of the archive
	Size    int64  `json:"size"`
}

// The names of binaries in Binary.Name. A network plugin adds its own.
const (
	BinaryKubelet    = "kubelet"
	BinaryKubeadm    = "kubeadm"
	BinaryKubectl    = "kubectl"
	BinaryContainerd = "containerd"
	BinaryRunc       = "runc"
	BinaryCNI        = "cni-plugins"
	BinaryCrictl     = "crictl"
)

// Binary is one downloadable file: a program, or a .tar.gz archive of programs.
type Binary struct {
	Name    string `json:"name"`    // one of the names above, or a network plugin's
	Version string `json:"version"` // without v
	URL     string `json:"url"`     // where a host downloads it if it is not pushed
	SHA256  string `json:"sha256"`  // hex, of the file as downloaded
	Size    int64  `json:"size,omitempty"`
	Archive bool   `json:"archive,omitempty"` // a gzip-compressed tar
	// Known says that the digest was confirmed by someone other than the source, in this run only: it is not stored.
	Known bool `json:"-"`
}

// Image is one container image.
type Image struct {
	// Name is its name in the cluster: "registry.k8s.io/kube-apiserver:v1.36.3".
	Name string `json:"name"`
	// Source is where it is pulled from if it is not pushed: the same name, or a mirror's.
	Source string `json:"source"`
	// Digest is the manifest's digest for this architecture: "sha256:…".
	Digest string `json:"digest"`
	Size   int64  `json:"size,omitempty"` // bytes of config and layers as transferred
	// Roles are the roles that need it; empty means every host.
	Roles []Role `json:"roles,omitempty"`
	// Blobs holds the digests ("sha256:…") and sizes of the manifest, config and layers, for uploads; empty if pulled.
	Blobs []Blob `json:"blobs,omitempty"`
	// Workload says that pods of addons and Helm releases use the image. Every host gets it, and keeps it under Name
	// whatever registry the cluster uses.
	Workload bool `json:"workload,omitempty"`
	// Known is like Binary.Known.
	Known bool `json:"-"`
}

// Blob is one content-addressed part of an image.
type Blob struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"mediaType"`
}

// NeededBy reports whether hosts of the role need the image.
func (i Image) NeededBy(r Role) bool {
	for _, have := range i.Roles {
		if have == r {
			return true
		}
	}
	return len(i.Roles) == 0
}

// ArtifactsKey returns the key in Cluster.Artifacts for hosts of an architecture, as Go names it ("amd64"), and these
// versions: just the architecture if no version is set.
func ArtifactsKey(arch string, v Versions) string {
	key := arch
	if v.Kubernetes != "" {
		key += " kubelet " + v.Kubernetes
	}
	if v.Containerd != "" {
		key += " containerd " + v.Containerd
	}
	return key
}

// ArtifactsFor returns what a host of that architecture gets, and whether it has been resolved.
func (c *Cluster) ArtifactsFor(h Host, arch string) (Artifacts, bool) {
	a, ok := c.Artifacts[ArtifactsKey(arch, h.Versions)]
	return a, ok
}

// Binary returns the binary with that name, and whether the release has it.
func (a Artifacts) Binary(name string) (Binary, bool) {
	for _, b := range a.Binaries {
		if b.Name == name {
			return b, true
		}
	}
	return Binary{}, false
}

// BinariesFor returns the binaries that hosts of the role need, in order. Workers do not need kubectl.
func (a Artifacts) BinariesFor(r Role) []Binary {
	var out []Binary
	for _, b := range a.Binaries {
		if r == ControlPlane || b.Name != BinaryKubectl {
			out = append(out, b)
		}
	}
	return out
}

// ImagesFor returns the images that hosts of the role need, in order.
func (a Artifacts) ImagesFor(r Role) []Image {
	var out []Image
	for _, i := range a.Images {
		if i.NeededBy(r) {
			out = append(out, i)
		}
	}
	return out
}

// Part is a binary, an image or a published manifest.
type Part struct {
	What  string // for messages: "kubelet 1.36.3", "image registry.k8s.io/pause:3.10.2"
	Known bool   // like Binary.Known
}

// PartsFor returns what hosts of the role need, binaries first. Control-plane hosts need everything, which includes the
// published manifests for the cluster.
func (a Artifacts) PartsFor(r Role) []Part {
	var out []Part
	for _, b := range a.BinariesFor(r) {
		out = append(out, Part{b.Name + " " + b.Version, b.Known})
	}
	for _, p := range a.Published {
		if r == ControlPlane {
			out = append(out, Part{p.Name + " " + p.Version, p.Known})
		}
	}
	for _, i := range a.ImagesFor(r) {
		out = append(out, Part{"image " + i.Name, i.Known})
	}
	return out
}
