package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// The control-plane components that extras are for, by the names of their static pods.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// ComponentDir returns the directory with a component's files, on control-plane hosts and in its static pod.
func ComponentDir(component string) string { return "/etc/kubernetes/kubeone/" + component }

// Extra is what one field of the manifest adds to a control-plane component. The rendered configuration is made from a
// table of extras. Without extras the configuration stays as it was before extras existed.
type Extra struct {
	Name      string            `json:"name"`      // its name in the manifest: "staticAuditLog"
	Component string            `json:"component"` // APIServer, ControllerManager or Scheduler
	Flags     map[string]string `json:"flags,omitempty"`
	Plugins   []AdmissionPlugin `json:"plugins,omitempty"` // of the API server
	Files     []ComponentFile   `json:"files,omitempty"`   // named by flags
	// Directories lists the hosts' directories that the component writes to. They are created if missing, mounted, and
	// left in place if no longer desired.
	Directories []string `json:"directories,omitempty"`
}

// AdmissionPlugin is an enabled plugin, with its configuration if it has any.
type AdmissionPlugin struct {
	Name   string         `json:"name"`
	Config *ComponentFile `json:"config,omitempty"`
}

// ComponentFile is a file that a component reads. Its path includes the digest of its content, so that a static pod
// never finds other content than it was made with. Changed content gives another file, another flag and another digest
// of the host's configuration, and a rolled-back pod finds its old file. Hosts keep it with mode 0600.
type ComponentFile struct {
	Path    string `json:"path"`              // on the host and in the pod
	Digest  string `json:"digest"`            // sha256 (hex) of the content
	Content string `json:"content,omitempty"` // "" where Secret
	Secret  bool   `json:"secret,omitempty"`  // the content is in the secrets of a step, as a file named Base
}

// Base returns the file's name.
func (f ComponentFile) Base() string { return path.Base(f.Path) }

// NewComponentFile returns a file with that name for a component. The content will end with exactly one newline.
func NewComponentFile(component, name, content string) ComponentFile {
	content = strings.TrimRight(content, "\n") + "\n"
	raw := sha256.Sum256([]byte(content))
	f := SecretComponentFile(component, name, hex.EncodeToString(raw[:]))
	f.Content, f.Secret = content, false
	return f
}

// SecretComponentFile returns a secret file with that name, with the digest but without the content.
func SecretComponentFile(component, name, digest string) ComponentFile {
	ext := path.Ext(name)
	file := fmt.Sprintf("%s-%.16s%s", strings.TrimSuffix(name, ext), digest, ext)
	return ComponentFile{Path: ComponentDir(component) + "/" + file, Digest: digest, Secret: true}
}

// Secretly separates the content: the rest may be shown and compared.
func (f ComponentFile) Secretly() (public ComponentFile, content string) {
	content = f.Content
	f.Content, f.Secret = "", true
	return f, content
}

// NodeSelectorPlugin is the admission plugin that adds the node selectors of namespaces to their pods.
const NodeSelectorPlugin = "PodNodeSelector"

// LimitsNodes reports whether pods get node selectors from their namespaces, or a default one. Pods that run on every
// host must be exempt from that.
func (c *Cluster) LimitsNodes() bool {
	return slices.ContainsFunc(c.Extras, func(e Extra) bool {
		return slices.ContainsFunc(e.Plugins, func(p AdmissionPlugin) bool { return p.Name == NodeSelectorPlugin })
	})
}

// NodeSelectorAnnotation on a namespace holds the node selector of its pods, instead of the default one.
const NodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"
