package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"strings"
)

// Source says where a chart is.
type Source struct {
	// Archive is the content of a chart folder, as Pack returns it; nil if the chart is fetched. Folder is its path.
	Archive []byte `json:"-"`
	Folder  string `json:"-"`
	// URL is the location of an archive ("https://…") or of an OCI artifact ("oci://…", without a tag).
	URL string `json:"url,omitempty"`
	// RepoURL is the location of a chart repository, if URL is empty. Name is the name of the chart there.
	RepoURL string `json:"repoURL,omitempty"`
	Name    string `json:"name,omitempty"`
	// Version is a version, or a range of versions such as "~1.2". "" is the latest version.
	Version string `json:"version,omitempty"`
	// Insecure accepts any certificate. The location of an OCI artifact may then use plain HTTP.
	Insecure           bool   `json:"-"`
	Username, Password string `json:"-"`
}

// Digest identifies the source: the content of a folder, or the location and version of a chart that is fetched.
// Credentials do not count.
func (s Source) Digest() string {
	text, _ := json.Marshal(s) // strings can always be encoded
	if s.Archive != nil {
		text = s.Archive
	}
	return shortDigest(text)
}

// String names the chart for people.
func (s Source) String() string {
	out, where := s.Name, ""
	switch {
	case s.Archive != nil:
		return "folder " + s.Folder
	case s.URL != "":
		out, where = path.Base(s.URL), redactURL(s.URL)
		if !strings.HasPrefix(s.URL, "oci://") {
			return where
		}
	default:
		where = redactURL(s.RepoURL)
	}
	if s.Version != "" {
		out += " " + s.Version
	}
	return out + " from " + where
}

// ValuesDigest identifies values.
func ValuesDigest(values map[string]any) string {
	if len(values) == 0 {
		values = map[string]any{}
	}
	text, err := json.Marshal(values) // with sorted keys
	if err != nil {
		return "" // values that were decoded from YAML or JSON can be encoded
	}
	return shortDigest(text)
}

// shortDigest returns a digest that fits into the value of a label.
func shortDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:20])
}

// redactURL removes a password from a URL.
func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "an invalid URL"
	}
	return u.Redacted()
}
