package manifest

import (
	"errors"
	"fmt"
	"io"
	"kubeone/api/kubeone/v1beta2"
	"kubeone/internal/model/desired"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxFeatureFile is the maximum size of a feature's file in bytes. The files are embedded in scripts, and stored in
// objects, whose size etcd limits.
const maxFeatureFile = 256 << 10

// featureFile is a file that a feature refers to, and the field that can hold its content instead.
type featureFile struct {
	feature       string  // "features.staticAuditLog"
	name, content string  // the fields, below the feature's config
	file, text    *string // their values
	secret        bool    // the content must not appear in messages
	check         func(text string) []mistake
}

// mistake is a problem in the content of a file.
type mistake struct {
	line    int // from 1; 0 means the whole file
	message string
}

// featureFiles returns the files of the enabled features.
func featureFiles(f *v1beta2.Features) []featureFile {
	var out []featureFile
	if a := f.StaticAuditLog; a != nil && a.Enable {
		out = append(out, featureFile{
			feature: "features.staticAuditLog", name: "policyFilePath", content: "policy",
			file: &a.Config.PolicyFilePath, text: &a.Config.Policy, check: auditPolicyMistakes,
		})
	}
	if w := f.WebhookAuditLog; w != nil && w.Enable {
		out = append(out, featureFile{
			feature: "features.webhookAuditLog", name: "policyFilePath", content: "policy",
			file: &w.Config.PolicyFilePath, text: &w.Config.Policy, check: auditPolicyMistakes,
		}, featureFile{
			feature: "features.webhookAuditLog", name: "configFilePath", content: "kubeconfig",
			file: &w.Config.ConfigFilePath, text: &w.Config.Kubeconfig, check: kubeconfigMistakes, secret: true,
		})
	}
	if p := f.PodNodeSelector; p != nil && p.Enable {
		out = append(out, featureFile{
			feature: "features.podNodeSelector", name: "configFilePath", content: "configuration",
			file: &p.Config.ConfigFilePath, text: &p.Config.Configuration, check: nodeSelectorMistakes,
		})
	}
	if e := f.EventRateLimit; e != nil && e.Enable {
		out = append(out, featureFile{
			feature: "features.eventRateLimit", name: "configFilePath", content: "configuration",
			file: &e.Config.ConfigFilePath, text: &e.Config.Configuration, check: eventRateMistakes,
		})
	}
	if a := f.AuthenticationConfiguration; a != nil && a.Enable {
		out = append(out, featureFile{
			feature: "features.authenticationConfiguration", name: "configFilePath", content: "configuration",
			file: &a.Config.ConfigFilePath, text: &a.Config.Configuration, check: authenticationMistakes,
		})
	}
	if o := f.OpenIDConnect; o != nil && o.Enable && !filepath.IsAbs(o.Config.CAFile) {
		out = append(out, featureFile{
			feature: "features.openidConnect", name: "caFile", content: "ca",
			file: &o.Config.CAFile, text: &o.Config.CA, check: func(string) []mistake { return nil },
		})
	}
	return out
}

// readFeatures copies the content of feature files into the manifest, so that later stages do not need the files. It
// reports the mistakes in them.
func (l *loader) readFeatures() {
	for _, f := range featureFiles(&l.cluster.Features) {
		l.readFeature(f)
	}
	if w := l.cluster.Features.WebhookAuditLog; w != nil && w.Enable && w.Config.Kubeconfig != "" {
		w.Config.KubeconfigDigest = newWebhookKubeconfig(w.Config).Digest
	}
}

func (l *loader) readFeature(f featureFile) {
	namePath, contentPath := f.feature+".config."+f.name, f.feature+".config."+f.content
	var fromFile string
	if *f.file != "" {
		at := l.where.findPosition(namePath)
		at.Path = namePath
		l.where[namePath] = at
		if *f.text != "" {
			l.reportPath(namePath, Error, "keep one of them", "cannot be set together with "+contentPath)
			return
		}
		var data []byte
		err := l.refuseFile()
		if err == nil {
			data, err = readFeatureFile(l.absolutePath(*f.file))
		}
		if err != nil {
			l.reportPath(namePath, Error, "the path is relative to the manifest directory", err.Error())
			l.explained = append(l.explained, namePath)
			return
		}
		fromFile, *f.text, *f.file = *f.file, string(data), ""
		l.where[contentPath] = at
	}
	if *f.text == "" {
		return
	}
	for _, m := range f.check(*f.text) {
		if fromFile != "" {
			l.found = append(l.found, Problem{
				File: fromFile, Line: m.line, Path: namePath, Message: m.message, Severity: Error,
			})
			continue
		}
		if m.line > 0 {
			m.message = fmt.Sprintf("line %d: %s", m.line, m.message)
		}
		l.reportPath(contentPath, Error, "", m.message)
	}
}

// readFeatureFile reads a file that can be embedded in a script: UTF-8, not empty, and at most maxFeatureFile bytes.
func readFeatureFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFeatureFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFeatureFile:
		return nil, fmt.Errorf("%s is larger than %d KiB", path, maxFeatureFile>>10)
	case !utf8.Valid(data):
		return nil, errors.New(path + " is not UTF-8 text")
	case strings.TrimSpace(string(data)) == "":
		return nil, errors.New(path + " is empty")
	}
	return data, nil
}

// newWebhookKubeconfig returns the kubeconfig for the server that receives audit events. If the manifest contains only
// the digest, the result has no content.
func newWebhookKubeconfig(c v1beta2.WebhookAuditLogConfig) desired.ComponentFile {
	const name = "audit-webhook.kubeconfig"
	if c.Kubeconfig == "" {
		return desired.SecretComponentFile(desired.APIServer, name, c.KubeconfigDigest)
	}
	return desired.NewComponentFile(desired.APIServer, name, c.Kubeconfig)
}

// Secrets holds the secret values in the manifest and the credentials file. They are not part of Cluster, its digest or
// ManifestText. Printing a Secrets does not reveal them.
type Secrets struct {
	// Registries holds registry credentials by host, from the credentials file and the manifest.
	Registries map[string]v1beta2.ContainerdRegistryAuthConfig
	// AllRegistries means that Registries is complete: credentials for other registries must be removed from hosts. It is
	// false if there is no credentials file and the manifest contains no registry credentials, because the operator may
	// have forgotten the file.
	AllRegistries bool
	// Helm holds credentials for chart repositories by release name.
	Helm map[string]v1beta2.HelmAuth
	// HTTPProxy and HTTPSProxy are the proxy URLs if they contain a user and password, otherwise "".
	HTTPProxy, HTTPSProxy string
	// Files holds the content of the secret files in Cluster.Extras by name.
	Files map[string][]byte
}

// String hides the secrets from %v and %s.
func (Secrets) String() string { return "[secrets]" }

// GoString hides the secrets from %#v.
func (Secrets) GoString() string { return "[secrets]" }

// MarshalJSON hides the secrets from JSON.
func (Secrets) MarshalJSON() ([]byte, error) { return []byte(`"[secrets]"`), nil }

// secretValues returns the secrets from both files. The credentials file takes precedence over the manifest.
func (l *loader) secretValues() Secrets {
	s := newSecrets(l.cluster)
	maps.Copy(s.Registries, l.registries)
	s.AllRegistries = l.registries != nil || len(s.Registries) > 0
	return s
}

func newSecrets(c *v1beta2.KubeOneCluster) Secrets {
	s := Secrets{Registries: map[string]v1beta2.ContainerdRegistryAuthConfig{}, Helm: map[string]v1beta2.HelmAuth{}}
	if r := c.ContainerRuntime.Containerd; r != nil {
		for host, registry := range r.Registries {
			if registry.Auth != nil {
				s.Registries[host] = *registry.Auth
			}
		}
	}
	for _, r := range c.HelmReleases {
		if r.Auth != nil {
			s.Helm[r.NameOfRelease()] = *r.Auth
		}
	}
	if c.Proxy.HTTP != v1beta2.WithoutUser(c.Proxy.HTTP) {
		s.HTTPProxy = c.Proxy.HTTP
	}
	if c.Proxy.HTTPS != v1beta2.WithoutUser(c.Proxy.HTTPS) {
		s.HTTPSProxy = c.Proxy.HTTPS
	}
	return s
}

// suggestName returns the known name that is most similar to a misspelled name, or "" if none is similar.
func suggestName(name string, known []string) string {
	name = foldName(name)
	best, bestDistance := "", 2+min(len(name)/4, 2)
	for _, k := range known {
		if d := editDistance(name, foldName(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	for _, k := range known {
		shorter, longer := name, foldName(k)
		if len(shorter) > len(longer) {
			shorter, longer = longer, shorter
		}
		if best == "" && len(shorter) >= 5 && strings.HasPrefix(longer, shorter) {
			best = k
		}
	}
	return best
}

// foldName makes different spellings of a name equal: sshPort, ssh_port, SSHPort.
func foldName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// editDistance returns the optimal string alignment distance: the smallest number of insertions, deletions,
// replacements and swaps of adjacent bytes that turn a into b.
func editDistance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// pathsWithName returns the paths of all fields with this name in any spelling, to suggest them for a misplaced field.
// It returns nil if there are more than three, because then none is a useful hint.
func pathsWithName(root reflect.Type, name string) []string {
	var found []string
	var walk func(t reflect.Type, path string, depth int)
	walk = func(t reflect.Type, path string, depth int) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			if t.Kind() == reflect.Slice {
				path += "[]"
			}
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || depth == 0 {
			return
		}
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous {
				continue
			}
			at := v1beta2.Child(path, v1beta2.JSONName(f))
			if foldName(v1beta2.JSONName(f)) == foldName(name) {
				found = append(found, at)
			}
			walk(f.Type, at, depth-1)
		}
	}
	walk(root, "", 4)
	if len(found) > 3 {
		return nil
	}
	slices.Sort(found)
	return found
}
