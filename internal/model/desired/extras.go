package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// The components of the control plane that extras are for: the names of their static pods.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// ComponentDir is where the files of a component are on control-plane hosts, and in its static pod.
func ComponentDir(component string) string { return "/etc/kubernetes/kubeone/" + component }

// Extra is what one thing that the manifest wants adds to a component of the control plane: a row of a table that the
// rendered configuration is made from. A cluster without extras has the configuration that it always had.
type Extra struct {
	Name      string            `json:"name"`      // as the manifest calls it: "staticAuditLog"
	Component string            `json:"component"` // APIServer, ControllerManager or Scheduler
	Flags     map[string]string `json:"flags,omitempty"`
	Plugins   []AdmissionPlugin `json:"plugins,omitempty"` // of the API server
	Files     []ComponentFile   `json:"files,omitempty"`   // those that flags name
	// Directories of the hosts that the component writes to: made where they are missing, mounted where they are, and
	// left when nobody wants them any more.
	Directories []string `json:"directories,omitempty"`
}

// AdmissionPlugin is one that is switched on, with its configuration if it has any.
type AdmissionPlugin struct {
	Name   string         `json:"name"`
	Config *ComponentFile `json:"config,omitempty"`
}

// ComponentFile is a file that a component reads. Its path has the digest of its content in it, so that a static pod
// never finds another content than it was made with: a changed one is another file, another flag, another digest of
// the host's configuration, and a pod that is taken back finds what it had. Hosts keep it with mode 0600.
type ComponentFile struct {
	Path    string `json:"path"`              // on the host and in the pod
	Digest  string `json:"digest"`            // sha256 (hex) of the content
	Content string `json:"content,omitempty"` // "" where Secret
	Secret  bool   `json:"secret,omitempty"`  // the content is a file among the secrets of a step, of the name Base
}

// Base returns the file's name.
func (f ComponentFile) Base() string { return path.Base(f.Path) }

// NewComponentFile returns a file of that name for a component. The content ends with one newline, whatever it ended
// with.
func NewComponentFile(component, name, content string) ComponentFile {
	content = strings.TrimRight(content, "\n") + "\n"
	raw := sha256.Sum256([]byte(content))
	f := SecretComponentFile(component, name, hex.EncodeToString(raw[:]))
	f.Content, f.Secret = content, false
	return f
}

// SecretComponentFile returns a secret file of that name, of which only the digest is known here.
func SecretComponentFile(component, name, digest string) ComponentFile {
	ext := path.Ext(name)
	file := fmt.Sprintf("%s-%.16s%s", strings.TrimSuffix(name, ext), digest, ext)
	return ComponentFile{Path: ComponentDir(component) + "/" + file, Digest: digest, Secret: true}
}

// Secretly splits off the content: what is left may be shown, and compared.
func (f ComponentFile) Secretly() (public ComponentFile, content string) {
	content = f.Content
	f.Content, f.Secret = "", true
	return f, content
}

// NodeSelectorPlugin is the admission plugin that gives pods the node selectors of their namespaces.
const NodeSelectorPlugin = "PodNodeSelector"

// LimitsNodes reports whether pods get node selectors from their namespaces, or a default one. What runs on every host
// must be exempt from that.
func (c *Cluster) LimitsNodes() bool {
	return slices.ContainsFunc(c.Extras, func(e Extra) bool {
		return slices.ContainsFunc(e.Plugins, func(p AdmissionPlugin) bool { return p.Name == NodeSelectorPlugin })
	})
}

// NodeSelectorAnnotation on a namespace is the node selector of its pods, instead of the default one.
const NodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"
