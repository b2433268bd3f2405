package desired

// PublishedManifest is a file of Kubernetes objects as its project publishes it. Only the operator's machine reads it:
// hosts do not get it.
type PublishedManifest struct {
	Name    string `json:"name"`    // "canal-manifest"
	Version string `json:"version"` // without v
	URL     string `json:"url"`     // the official location
	SHA256  string `json:"sha256"`  // hex; "" if unknown
	Size    int64  `json:"size"`    // in bytes
	// Content has been checked against SHA256; nil if it is not available, and then Problem is the reason.
	Content []byte `json:"-"`
	Problem string `json:"-"`
	// Known is like Binary.Known.
	Known bool `json:"-"`
}
