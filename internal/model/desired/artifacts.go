package desired

// Artifacts is the list of all that is installed on hosts of one architecture for one Kubernetes version, each with the
// digest that it is checked against before it is used. It comes with the plan and is part of the plan's digest.
type Artifacts struct {
	KubernetesVersion string   `json:"kubernetesVersion"` // without v
	Arch              string   `json:"arch"`
	Binaries          []Binary `json:"binaries"`
	Images            []Image  `json:"images"`
	// Pushed says that the operator's machine holds the content (a bundle) and uploads it over SSH; otherwise each host
	// downloads from the URLs and registries.
	Pushed bool `json:"pushed"`
}

// The names of binaries, as Binary.Name has them. A network plugin brings its own.
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
	URL     string `json:"url"`     // where a host downloads it when it is not pushed
	SHA256  string `json:"sha256"`  // hex, of the file as downloaded
	Size    int64  `json:"size,omitempty"`
	Archive bool   `json:"archive,omitempty"` // a gzip-compressed tar
	// Known says that somebody other than the source vouches for the digest. It is about this run: it is kept nowhere.
	Known bool `json:"-"`
}

// Image is one container image.
type Image struct {
	// Name is how the cluster names it: "registry.k8s.io/kube-apiserver:v1.36.3".
	Name string `json:"name"`
	// Source is where it is pulled from when it is not pushed: the same, or a mirror's name for it.
	Source string `json:"source"`
	// Digest is the manifest's digest for this architecture: "sha256:…".
	Digest string `json:"digest"`
	Size   int64  `json:"size,omitempty"` // bytes of config and layers as transferred
	// Roles are the hosts that need it; empty means every host.
	Roles []Role `json:"roles,omitempty"`
	// Blobs are the digests ("sha256:…") and sizes of the manifest, config and layers, for uploads; empty when pulled.
	Blobs []Blob `json:"blobs,omitempty"`
	// Known is as a Binary's.
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

// ArtifactsKey returns the key in Cluster.Artifacts of what hosts of an architecture, as Go names it ("amd64"), and of
// these versions have installed: the architecture where no version is named.
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

// ArtifactsFor returns what a host of that architecture has installed, and whether it has been resolved.
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

// BinariesFor returns the binaries that hosts of the role need, in order. Workers have no use for kubectl.
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

// Part is a binary or an image.
type Part struct {
	What  string // for a person: "kubelet 1.36.3", "image registry.k8s.io/pause:3.10.2"
	Known bool   // as Binary.Known
}

// PartsFor returns what hosts of the role need, binaries first. Control-plane hosts need all.
func (a Artifacts) PartsFor(r Role) []Part {
	var out []Part
	for _, b := range a.BinariesFor(r) {
		out = append(out, Part{b.Name + " " + b.Version, b.Known})
	}
	for _, i := range a.ImagesFor(r) {
		out = append(out, Part{"image " + i.Name, i.Known})
	}
	return out
}
